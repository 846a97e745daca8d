//! What a command's handler works with: its arguments, its keys' shards (locked), its reply.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::MutexGuard;
use tidewheel_resp::{Args, Writer};
use tidewheel_store::{NewValue, Slot, Value};

use crate::access::Recency;
use crate::command::{Command, CommandError};
use crate::events::{Event, NotifyClass, NotifyFlags};
use crate::garbage::Garbage;
use crate::keyspace::{Keyspace, Session};
use crate::shard::{Database, ShardState};
use crate::time::Now;
use crate::value::{Entries, LARGE, Object};

/// What a command's handler works with.
///
/// The dispatcher has locked the shards of the row's keys before the handler runs; the handler reaches
/// them through `Key`s and never locks by itself, apart from rows without keys that walk all shards.
#[derive(Debug)]
pub struct Context<'a, 'b> {
    pub(crate) keyspace: &'a Keyspace,
    pub(crate) session: &'a mut Session,
    pub(crate) now: Now,
    pub(crate) args: Args<'b>,
    pub(crate) out: &'a mut Writer,
    pub(crate) notify: NotifyFlags,
    /// Whether the command may change data.
    pub(crate) writes: bool,
    /// The only shard that is locked, and the hash of the only key.
    one: Option<MutexGuard<'a, ShardState>>,
    shard: usize,
    hash: u64,
    /// Several shards that are locked, in their order; empty if `one` is.
    many: Vec<(usize, MutexGuard<'a, ShardState>)>,
    /// When the locks were taken, if this hold is measured.
    held_since_ns: Option<u64>,
    /// What large values need before or after locking. A pointer, since most commands have none.
    large: Option<Box<Large>>,
}

/// What large values need before or after locking.
#[derive(Debug, Default)]
struct Large {
    /// Arguments that were copied before locking: (argument, object).
    prepared: Vec<(usize, Object)>,
    /// Places in the reply to be filled after unlocking.
    holes: Vec<Hole>,
    /// Objects to drop after unlocking.
    garbage: Vec<Object>,
}

/// A key of the running command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) hash: u64,
    pub(crate) shard: usize,
}

/// A large value's place in the reply.
#[derive(Debug)]
struct Hole {
    mark: usize,
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
}

/// How a lookup counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// Counts as a hit or a miss and as an access; a miss is announced.
    Read,
    /// As `Read`, without being an access.
    Peek,
    /// As `Peek`, without announcing a miss.
    Inspect,
    /// Counts as an access only.
    Write,
}

impl<'a, 'b> Context<'a, 'b> {
    #[inline(always)]
    pub(crate) fn new(
        keyspace: &'a Keyspace,
        session: &'a mut Session,
        now: Now,
        args: Args<'b>,
        out: &'a mut Writer,
        writes: bool,
    ) -> Self {
        Self {
            keyspace,
            session,
            now,
            args,
            out,
            notify: keyspace.settings().notify_flags(),
            writes,
            one: None,
            shard: 0,
            hash: 0,
            many: Vec::new(),
            held_since_ns: None,
            large: None,
        }
    }

    // ---- Locks -------------------------------------------------------------------------------

    /// Locks the shards of a row's keys; before that, copies large arguments that will be stored.
    #[inline]
    pub(crate) fn lock_keys(&mut self, row: &Command) {
        let (keys, n) = (&row.keys, self.args.len());
        if keys.first == 0 {
            return;
        }
        let first = keys.first as usize;
        // DEL of one key is as cheap as GET.
        let only =
            keys.last == keys.first as i32 || keys.last == -1 && n <= first + keys.step as usize;
        if only {
            if row.stored_argument != 0 {
                self.prepare(row.stored_argument as usize);
            }
            self.lock_one(self.args.get(first).unwrap_or_default());
        } else {
            if row.stored_argument != 0 {
                keys.positions(n).for_each(|at| self.prepare(at + 1));
            }
            let args = self.args;
            self.lock_many(keys.positions(n).filter_map(|at| args.get(at)));
        }
    }

    /// Locks the shard of one key.
    #[inline]
    pub(crate) fn lock_one(&mut self, key: &[u8]) {
        let hash = self.keyspace.hash(key);
        let shard = self.keyspace.shard_of(hash);
        let mut guard = self.keyspace.shards[shard].state.lock();
        guard.holds = guard.holds.wrapping_add(1);
        // Reading the clock twice costs as much as a whole GET: sample.
        if guard.holds.is_multiple_of(HOLDS_PER_SAMPLE) {
            self.held_since_ns = Some(self.keyspace.hooks.stopwatch_ns());
        }
        (self.shard, self.hash) = (shard, hash);
        self.one = Some(guard);
    }

    /// Locks the shards of several keys, in shard order.
    pub(crate) fn lock_many<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>) {
        // One bit a shard: order and uniqueness without sorting.
        let mut wanted = [0_u64; crate::keyspace::SHARDS_MAX / 64];
        for key in keys {
            let shard = self.keyspace.shard_of(self.keyspace.hash(key));
            wanted[shard / 64] |= 1 << (shard % 64);
        }
        let count: u32 = wanted.iter().map(|word| word.count_ones()).sum();
        let mut guards = Vec::with_capacity(count as usize);
        for (i, mut word) in wanted.into_iter().enumerate() {
            while word != 0 {
                let shard = i * 64 + word.trailing_zeros() as usize;
                word &= word - 1;
                guards.push((shard, self.keyspace.shards[shard].state.lock()));
            }
        }
        self.held_since_ns = Some(self.keyspace.hooks.stopwatch_ns());
        self.many = guards;
    }

    /// Locks one shard for a command that walks them all.
    pub(crate) fn lock_shard(&mut self, shard: usize) {
        let guard = self.keyspace.shards[shard].state.lock();
        self.held_since_ns = Some(self.keyspace.hooks.stopwatch_ns());
        self.shard = shard;
        self.one = Some(guard);
    }

    /// Unlocks, then wakes sleepers whose deadline became earlier. Large values that the handler needs
    /// must be shared ([`Arc`]) before.
    #[inline]
    pub(crate) fn unlock(&mut self) {
        if let Some(mut guard) = self.one.take() {
            let wake = std::mem::take(&mut guard.wake);
            if let Some(since) = self.held_since_ns.take() {
                self.keyspace.record_hold(since);
            }
            drop(guard);
            if wake {
                self.keyspace.wake(self.shard);
            }
        } else if !self.many.is_empty() {
            self.unlock_many();
        }
    }

    fn unlock_many(&mut self) {
        if let Some(since) = self.held_since_ns.take() {
            self.keyspace.record_hold(since);
        }
        let mut to_wake = Vec::new();
        for (shard, mut guard) in self.many.drain(..) {
            if std::mem::take(&mut guard.wake) {
                to_wake.push(shard);
            }
        }
        to_wake
            .into_iter()
            .for_each(|shard| self.keyspace.wake(shard));
    }

    /// Unlocks and does what must not happen under a lock: copying large replies, dropping large values.
    #[inline]
    pub(crate) fn finish(&mut self) {
        self.unlock();
        if let Some(large) = self.large.take() {
            self.finish_large(*large);
        }
    }

    #[cold]
    fn finish_large(&mut self, large: Large) {
        let mut garbage = large.garbage;
        if !large.holes.is_empty() {
            self.fill_holes(large.holes, &mut garbage);
        }
        // A value that was copied for nothing (SET NX) is as large.
        garbage.extend(large.prepared.into_iter().map(|(_, object)| object));
        self.keyspace.discard(garbage);
    }

    fn fill_holes(&mut self, holes: Vec<Hole>, garbage: &mut Vec<Object>) {
        let Some(first) = holes.first().map(|hole| hole.mark) else {
            return;
        };
        let rest = self.out.as_bytes()[first..].to_vec();
        self.out.truncate(first);
        let mut written = first;
        for hole in holes {
            self.out.raw(&rest[written - first..hole.mark - first]);
            written = hole.mark;
            self.out.bulk(&hole.bytes[hole.range]);
            // If the key is gone meanwhile, this is the last owner.
            garbage.push(Object::Bytes(hole.bytes));
        }
        self.out.raw(&rest[written - first..]);
    }

    /// Forgets what the handler had begun to reply.
    pub(crate) fn discard_reply(&mut self, mark: usize) {
        if let Some(large) = &mut self.large {
            large.holes.clear();
        }
        self.out.truncate(mark);
    }

    fn large(&mut self) -> &mut Large {
        self.large.get_or_insert_default()
    }

    #[inline]
    fn state(&mut self, shard: usize) -> &mut ShardState {
        match &mut self.one {
            Some(guard) => {
                debug_assert_eq!(self.shard, shard, "the row's keys cover every key");
                guard
            }
            None => &mut place_of(&mut self.many, shard).1,
        }
    }

    /// The state of the one shard that is locked.
    pub(crate) fn locked(&mut self) -> &mut ShardState {
        match &mut self.one {
            Some(guard) => guard,
            None => unreachable!("the caller has locked one shard"),
        }
    }

    // ---- Keys --------------------------------------------------------------------------------

    /// The key at an argument's position; the row's key specification names it.
    #[inline]
    pub(crate) fn key(&self, argument: usize) -> Key<'b> {
        let bytes = self.args.get(argument).unwrap_or_default();
        match self.one {
            Some(_) => Key {
                bytes,
                hash: self.hash,
                shard: self.shard,
            },
            None => self.keyspace.key(bytes),
        }
    }

    /// The session's database in the key's shard.
    #[inline]
    pub(crate) fn database(&mut self, key: Key<'_>) -> &mut Database {
        let db = self.session.db;
        self.database_at(key, db)
    }

    /// Another database in the key's shard.
    #[inline]
    pub(crate) fn database_at(&mut self, key: Key<'_>, db: u32) -> &mut Database {
        &mut self.state(key.shard).databases[db as usize]
    }

    /// The session's entries in the key's shard.
    #[inline]
    pub(crate) fn entries(&mut self, key: Key<'_>) -> &Entries {
        &self.database(key).entries
    }

    /// Finds a living key in the session's database. A dead one is removed and announced.
    #[inline]
    pub(crate) fn find(&mut self, key: Key<'_>, lookup: Lookup) -> Option<Slot> {
        let (now, db, recency) = (self.now, self.session.db, self.recency());
        let touches = matches!(lookup, Lookup::Read | Lookup::Write) && !self.session.no_touch;
        let state = self.state(key.shard);
        let entries = &mut state.databases[db as usize].entries;
        let Some(slot) = entries.find(key.hash, key.bytes) else {
            return self.missed(key, lookup);
        };
        if let Some(deadline) = entries.deadline(slot)
            && now.reached(deadline)
        {
            self.remove_dead(key, db, slot, deadline);
            return self.missed(key, lookup);
        }
        if touches {
            let old = entries.access(slot);
            let new = recency.after_hit(old, now.time.tick, &mut state.random);
            // A clean cache line stays clean.
            if new != old {
                entries.set_access(slot, new);
            }
        }
        state.counters.hits += u64::from(lookup != Lookup::Write);
        Some(slot)
    }

    fn missed(&mut self, key: Key<'_>, lookup: Lookup) -> Option<Slot> {
        if matches!(lookup, Lookup::Read | Lookup::Peek) {
            self.event(key, NotifyClass::KeyMiss, "keymiss");
        }
        self.state(key.shard).counters.misses += u64::from(lookup != Lookup::Write);
        None
    }

    /// Finds a living key in any database, without counting anything. A dead one is removed and announced.
    #[inline]
    pub(crate) fn find_at(&mut self, key: Key<'_>, db: u32) -> Option<Slot> {
        let entries = &self.database_at(key, db).entries;
        let slot = entries.find(key.hash, key.bytes)?;
        match entries.deadline(slot) {
            Some(deadline) if self.now.reached(deadline) => {
                self.remove_dead(key, db, slot, deadline);
                None
            }
            _ => Some(slot),
        }
    }

    #[cold]
    fn remove_dead(&mut self, key: Key<'_>, db: u32, slot: Slot, deadline: u64) {
        // Only a command that adds nothing may leave it: a key is never stored twice.
        if !self.writes && self.keyspace.settings().keep_dead.load(Relaxed) {
            return;
        }
        self.keyspace
            .lateness_us
            .record(self.now.lateness_us(deadline), 1);
        self.remove_at(key, db, slot);
        self.state(key.shard).counters.expired += 1;
        self.notify(key, db, NotifyClass::Expired, "expired");
    }

    // ---- Changes -----------------------------------------------------------------------------

    /// An argument as a value to store.
    #[inline]
    pub(crate) fn new_value(&mut self, argument: usize) -> NewValue<'b, Object> {
        let bytes = self.args.get(argument).unwrap_or_default();
        if bytes.len() <= tidewheel_store::INLINE_MAX {
            return NewValue::Inline(bytes);
        }
        if let Some(large) = &mut self.large
            && let Some(at) = large.prepared.iter().position(|(i, _)| *i == argument)
        {
            return NewValue::Object(large.prepared.swap_remove(at).1);
        }
        NewValue::Object(Object::new(bytes.to_vec()))
    }

    /// Copies an argument that will be stored before locks are taken, if it is large.
    #[inline]
    pub(crate) fn prepare(&mut self, argument: usize) {
        if let Some(bytes) = self.args.get(argument)
            && bytes.len() > LARGE
        {
            self.large()
                .prepared
                .push((argument, Object::new(bytes.to_vec())));
        }
    }

    /// Adds a key that does not exist, in the session's database.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        key: Key<'_>,
        tag: u8,
        value: NewValue<'_, Object>,
        deadline: Option<u64>,
    ) {
        let db = self.session.db;
        let access = self.recency().of_new(self.now.time.tick);
        self.insert_at(key, db, tag, value, deadline, access);
    }

    /// Adds a key that does not exist, in any database.
    #[inline]
    pub(crate) fn insert_at(
        &mut self,
        key: Key<'_>,
        db: u32,
        tag: u8,
        value: NewValue<'_, Object>,
        deadline: Option<u64>,
        access: u32,
    ) {
        let tick = self.now.tick;
        let database = self.database_at(key, db);
        if let NewValue::Object(object) = &value {
            database.object_bytes += object.bytes();
        }
        let slot = database
            .entries
            .insert(key.hash, key.bytes, tag, value, deadline, tick);
        database.entries.set_access(slot, access);
        self.changed(key, db, deadline);
        self.notify(key, db, NotifyClass::New, "new");
    }

    /// Replaces a key's type, value and deadline, in the session's database.
    #[inline]
    pub(crate) fn replace(
        &mut self,
        key: Key<'_>,
        slot: Slot,
        tag: u8,
        value: NewValue<'_, Object>,
        deadline: Option<u64>,
    ) {
        let (tick, db) = (self.now.tick, self.session.db);
        let database = self.database(key);
        if let NewValue::Object(object) = &value {
            database.object_bytes += object.bytes();
        }
        let (_, old) = database.entries.replace(slot, tag, value, deadline, tick);
        if let Some(old) = old {
            self.drop_object(key, db, old);
        }
        self.changed(key, db, deadline);
    }

    /// Gives a key a deadline, or takes it away, in the session's database.
    #[inline]
    pub(crate) fn set_deadline(&mut self, key: Key<'_>, slot: Slot, deadline: Option<u64>) {
        let (tick, db) = (self.now.tick, self.session.db);
        self.database(key)
            .entries
            .set_deadline(slot, deadline, tick);
        self.changed(key, db, deadline);
    }

    /// Removes a key from the session's database.
    pub(crate) fn remove(&mut self, key: Key<'_>, slot: Slot) {
        let db = self.session.db;
        self.remove_at(key, db, slot);
    }

    /// Removes a key from any database.
    pub(crate) fn remove_at(&mut self, key: Key<'_>, db: u32, slot: Slot) {
        let object = self.database_at(key, db).entries.remove(slot);
        if let Some(object) = object {
            self.drop_object(key, db, object);
        }
        self.changed(key, db, None);
    }

    /// Removes a key from any database and keeps its object for the caller.
    pub(crate) fn take_at(&mut self, key: Key<'_>, db: u32, slot: Slot) -> Option<Object> {
        let database = self.database_at(key, db);
        let object = database.entries.remove(slot);
        if let Some(object) = &object {
            database.object_bytes -= object.bytes();
        }
        self.changed(key, db, None);
        object
    }

    /// Changes an object in place, in the session's database. `change` keeps it an object.
    pub(crate) fn change_object<R>(
        &mut self,
        key: Key<'_>,
        slot: Slot,
        change: impl FnOnce(&mut Object) -> R,
    ) -> Option<R> {
        let db = self.session.db;
        let database = self.database(key);
        let object = database.entries.object_mut(slot)?;
        let before = object.bytes();
        let result = change(object);
        let after = object.bytes();
        database.object_bytes = database.object_bytes + after - before;
        self.changed(key, db, None);
        Some(result)
    }

    fn drop_object(&mut self, key: Key<'_>, db: u32, object: Object) {
        self.database_at(key, db).object_bytes -= object.bytes();
        self.large().garbage.push(object);
    }

    /// Publishes what a change did to the shard: its bytes and its earliest deadline.
    #[inline]
    fn changed(&mut self, key: Key<'_>, db: u32, deadline: Option<u64>) {
        let keyspace = self.keyspace;
        let state = self.state(key.shard);
        keyspace.count_bytes(state, db);
        if deadline.is_some() {
            keyspace.shards[key.shard].note_deadline(state, db);
        }
    }

    // ---- Replies and events ------------------------------------------------------------------

    /// Replies with a part of a stored string. A large part is copied after unlocking.
    #[inline]
    pub(crate) fn reply_bytes(&mut self, key: Key<'_>, slot: Slot, range: Option<Range<usize>>) {
        let db = self.session.db;
        // Field by field, so that the store and the reply are borrowed at once.
        let state = match &self.one {
            Some(guard) => guard,
            None => &place_of(&mut self.many, key.shard).1,
        };
        match state.databases[db as usize].entries.value(slot) {
            Value::Inline(bytes) => match range {
                None => self.out.bulk(bytes),
                Some(range) => self.out.bulk(&bytes[range]),
            },
            Value::Object(Object::Bytes(bytes)) => {
                let range = range.unwrap_or(0..bytes.len());
                if range.len() <= LARGE {
                    self.out.bulk(&bytes[range]);
                } else {
                    let mark = self.out.mark();
                    let hole = Hole {
                        mark,
                        bytes: Arc::clone(bytes),
                        range,
                    };
                    self.large.get_or_insert_default().holes.push(hole);
                }
            }
        }
    }

    /// Queues an event of the session's database, if its class is wanted.
    #[inline]
    pub(crate) fn event(&mut self, key: Key<'_>, class: NotifyClass, name: &'static str) {
        let db = self.session.db;
        self.notify(key, db, class, name);
    }

    /// Queues an event, if its class is wanted.
    #[inline]
    pub(crate) fn notify(&mut self, key: Key<'_>, db: u32, class: NotifyClass, name: &'static str) {
        if self.notify.wants(class) {
            self.queue_event(
                key,
                Event {
                    db,
                    class,
                    name,
                    key: key.bytes.into(),
                },
            );
        }
    }

    #[cold]
    fn queue_event(&mut self, key: Key<'_>, event: Event) {
        let keyspace = self.keyspace;
        keyspace.queue_event(key.shard, self.state(key.shard), event);
    }

    /// Walks the session's database in the one shard that is locked.
    pub(crate) fn walk(
        &mut self,
        cursor: u32,
        count: usize,
        mut visit: impl FnMut(&mut Writer, &Entries, Slot),
    ) -> Option<u32> {
        let Some(guard) = &self.one else {
            unreachable!("the caller has locked one shard")
        };
        let entries = &guard.databases[self.session.db as usize].entries;
        let out = &mut *self.out;
        entries.scan(cursor, count, |slot| visit(out, entries, slot))
    }

    /// Lets go of a shared string; should its key be gone, this is where it is freed.
    pub(crate) fn let_go(&mut self, bytes: Arc<Vec<u8>>) {
        self.large().garbage.push(Object::Bytes(bytes));
    }

    /// How accesses are recorded.
    #[inline]
    pub(crate) fn recency(&self) -> Recency {
        self.keyspace.recency()
    }

    // ---- Arguments ---------------------------------------------------------------------------

    /// An argument as a signed integer.
    pub(crate) fn integer(&self, argument: usize) -> Result<i64, CommandError> {
        let bytes = self.args.get(argument).unwrap_or_default();
        tidewheel_resp::parse_i64(bytes).ok_or(CommandError::NOT_AN_INTEGER)
    }

    /// Whether an argument is this word, in any case.
    pub(crate) fn is(&self, argument: usize, word: &str) -> bool {
        self.args
            .get(argument)
            .is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// An argument as a database index.
    pub(crate) fn database_index(&self, argument: usize) -> Result<u32, CommandError> {
        let index = i32::try_from(self.integer(argument)?).map_err(|_| NOT_AN_INT)?;
        self.keyspace
            .database_index(index.into())
            .ok_or(CommandError::DB_OUT_OF_RANGE)
    }
}

const NOT_AN_INT: CommandError =
    CommandError::fixed("ERR value is out of range, value must between -2147483648 and 2147483647");

/// The locked shard among several.
fn place_of<'m, 'a>(
    many: &'m mut [(usize, MutexGuard<'a, ShardState>)],
    shard: usize,
) -> &'m mut (usize, MutexGuard<'a, ShardState>) {
    match many.binary_search_by_key(&shard, |(shard, _)| *shard) {
        Ok(at) => &mut many[at],
        Err(_) => unreachable!("the row's keys cover every key, and their shards are locked"),
    }
}

/// One in this many holds of a single key is measured.
const HOLDS_PER_SAMPLE: u32 = 32;

impl Keyspace {
    /// Drops objects that left the keyspace: large ones away from the loop.
    pub(crate) fn discard(&self, objects: Vec<Object>) {
        if objects.iter().any(|object| object.bytes() > LARGE) {
            self.hooks.reclaim(Garbage::objects(objects));
        }
    }

    #[inline]
    pub(crate) fn recency(&self) -> Recency {
        let settings = self.settings();
        if settings.counts_frequency() {
            Recency::Frequency {
                log_factor: settings.lfu_log_factor.load(Relaxed),
                decay_minutes: settings.lfu_decay_time.load(Relaxed),
            }
        } else {
            Recency::Clock
        }
    }
}
