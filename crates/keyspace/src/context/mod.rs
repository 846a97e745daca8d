//! The context of a command's handler: its arguments, its keys' shards (locked), its reply.

mod changes;
mod collections;
mod locks;
mod records;
mod replies;

use std::sync::Arc;

use tidewheel_resp::{Args, Writer};
use tidewheel_store::{Seen, Slot};

pub(crate) use self::locks::HOLDS_PER_SAMPLE;
use self::records::Instead;
pub(crate) use self::replies::LargeValues;
use crate::access::Recency;
use crate::budget::Budget;
use crate::claims::Blocked;
use crate::error::CommandError;
use crate::events::Cause;
use crate::gate::Seat;
pub(crate) use crate::key::Key;
use crate::keyspace::Keyspace;
use crate::records::Encoder;
use crate::rows::Command;
use crate::rows::Flags;
use crate::session::Session;
use crate::shard::{Hold, MemberExpiry, MemberExpiryOutcome};
use crate::time::Now;
use crate::value::collection;
use crate::value::{self, Entries};
use crate::waiters::{AwaitedKeys, Ticket};

/// The most due members of a key that a command removes in one step.
pub(crate) const DRAIN_STEP: u32 = 256;

/// The context of a command's handler.
///
/// [`Keyspace::begin`] has locked the shards of the row's keys before the handler runs. The handler
/// reaches them through `Key`s and does not lock by itself. Only handlers of rows without keys do:
/// they lock one shard after another.
#[derive(Debug)]
pub struct Context<'a, 'b> {
    pub(crate) keyspace: &'a Keyspace,
    pub(crate) session: &'b mut Session,
    pub(crate) now: Now,
    pub(crate) args: Args<'b>,
    pub(crate) out: &'b mut Writer,
    /// The seat that the command runs on, if it may be left for a while.
    pub(crate) seat: Option<&'b mut Seat>,
    /// The row of the command; `None` for work that is no command's.
    pub(crate) row: Option<&'static Command>,
    /// The only shard that is locked, and the hash of the only key.
    one: Option<Hold<'a>>,
    shard: usize,
    hash: u64,
    /// Several shards that are locked, in their order; empty if `one` is.
    many: Vec<(usize, Hold<'a>)>,
    /// The index of the shard that was used last.
    last: usize,
    /// The hashes of the keys in the row's range, if they are known.
    hashes: &'b [u64],
    /// True if the locks are a transaction's: they are not taken and not released here.
    kept: bool,
    /// True if waiting clients are served later, by the caller.
    pub(crate) defers: bool,
    /// The command waits.
    pub(crate) ticket: Option<Arc<Ticket>>,
    /// The command cannot run now.
    pub(crate) blocked: Option<Blocked>,
    /// It runs on a thread of its own: it waits for locks.
    pub(crate) is_long: bool,
    /// The records of a transaction's commands so far, if it is one of them.
    pub(crate) group: Option<Box<Encoder>>,
    /// What is recorded in its place.
    instead: Option<Box<Instead>>,
    /// True if it was recorded.
    recorded: bool,
    /// The time at which the locks were taken, if this hold is measured.
    held_since_ns: Option<u64>,
    /// Large values: work before locking and after unlocking. A pointer, because most commands
    /// have none.
    large: Option<Box<LargeValues>>,
}

/// The statistics and the access history that a look-up changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// Counts as a hit or a miss and as an access; a miss is announced.
    Read,
    /// As `Read`, though CLIENT NO-TOUCH is on.
    Touch,
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
        session: &'b mut Session,
        now: Now,
        args: Args<'b>,
        out: &'b mut Writer,
        row: Option<&'static Command>,
    ) -> Self {
        Self {
            keyspace,
            session,
            now,
            args,
            out,
            seat: None,
            row,
            one: None,
            shard: 0,
            hash: 0,
            many: Vec::new(),
            last: 0,
            hashes: &[],
            kept: false,
            defers: false,
            ticket: None,
            blocked: None,
            is_long: false,
            group: None,
            instead: None,
            recorded: false,
            held_since_ns: None,
            large: None,
        }
    }

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
            None => self.key_of_several(argument, bytes),
        }
    }

    /// The key of these bytes, whose shard is the only one that is locked.
    pub(crate) fn only_key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        Key {
            bytes,
            hash: self.hash,
            shard: self.shard,
        }
    }

    fn key_of_several(&self, argument: usize, bytes: &'b [u8]) -> Key<'b> {
        let hash = match self.row {
            Some(row) if !self.hashes.is_empty() => row.keys.hash_at(argument, self.hashes),
            _ => None,
        };
        debug_assert!(hash.is_none_or(|hash| hash == self.keyspace.hash(bytes)));
        hash.map_or_else(
            || self.keyspace.key(bytes),
            |hash| self.keyspace.hashed_key(hash, bytes),
        )
    }

    /// The session's entries in the key's shard.
    #[inline]
    pub(crate) fn entries(&mut self, key: Key<'_>) -> &Entries {
        let db = self.session.db;
        self.entries_at(key, db)
    }

    /// Another database's entries in the key's shard.
    #[inline]
    pub(crate) fn entries_at(&mut self, key: Key<'_>, db: u32) -> &Entries {
        self.hold(key.shard).entries(db)
    }

    /// Finds a living key in the session's database. A dead one is removed and announced.
    #[inline]
    pub(crate) fn find(&mut self, key: Key<'_>, lookup: Lookup) -> Option<Slot> {
        self.see(key, lookup).map(|seen| seen.slot)
    }

    /// As [`find`](Self::find), with what the look-up has read of the entry.
    pub(crate) fn see(&mut self, key: Key<'_>, lookup: Lookup) -> Option<Seen> {
        self.look(key, lookup)
    }

    /// As [`see`](Self::see). It is compiled into the commands of which it is the greater part.
    #[inline(always)]
    pub(crate) fn look(&mut self, key: Key<'_>, lookup: Lookup) -> Option<Seen> {
        let (tick, db) = (self.now.tick, self.session.db);
        match self.hold(key.shard).entries(db).look(key.hash, key.bytes) {
            None => self.missed(key, lookup),
            Some(seen) if seen.is_due(tick) => self.look_at_due(key, lookup, seen),
            Some(seen) => {
                self.note_found(key, lookup, seen);
                Some(seen)
            }
        }
    }

    /// A look-up has found an entry whose deadline was reached.
    #[cold]
    fn look_at_due(&mut self, key: Key<'_>, lookup: Lookup, seen: Seen) -> Option<Seen> {
        let db = self.session.db;
        let Some(seen) = self.remove_due(key, db, seen) else {
            return self.missed(key, lookup);
        };
        self.note_found(key, lookup, seen);
        Some(seen)
    }

    /// A look-up has found a living key.
    #[inline(always)]
    fn note_found(&mut self, key: Key<'_>, lookup: Lookup, seen: Seen) {
        let (keyspace, clock, db) = (self.keyspace, self.now.time.tick, self.session.db);
        let touches = match lookup {
            Lookup::Read | Lookup::Write => !self.session.no_touch,
            Lookup::Touch => true,
            Lookup::Peek | Lookup::Inspect => false,
        };
        let hold = self.hold(key.shard);
        if touches {
            hold.touch(db, seen, keyspace.rules(), clock);
        }
        hold.counters.hits += u64::from(lookup != Lookup::Write);
    }

    #[inline(never)]
    fn missed(&mut self, key: Key<'_>, lookup: Lookup) -> Option<Seen> {
        if matches!(lookup, Lookup::Read | Lookup::Touch | Lookup::Peek) {
            self.event(key, Cause::KeyMiss);
        }
        self.hold(key.shard).counters.misses += u64::from(lookup != Lookup::Write);
        None
    }

    /// Finds a living key in any database, without counting anything. A dead one is removed and
    /// announced.
    #[inline]
    pub(crate) fn find_at(&mut self, key: Key<'_>, db: u32) -> Option<Slot> {
        let seen = self.entries_at(key, db).look(key.hash, key.bytes)?;
        if seen.is_due(self.now.tick) {
            return self.remove_due(key, db, seen).map(|seen| seen.slot);
        }
        Some(seen.slot)
    }

    /// An entry's deadline was reached: its members leave that are due, or the key itself. Returns
    /// what is seen of a key that stays.
    #[cold]
    fn remove_due(&mut self, key: Key<'_>, db: u32, seen: Seen) -> Option<Seen> {
        let (slot, deadline) = (seen.slot, seen.deadline()?);
        if !value::is_timed(seen.tag) {
            self.remove_dead(key, db, slot, deadline);
            return None;
        }
        if self.hides(key, db, slot) || self.expire_members(key, db, slot, u32::MAX).gone {
            return None;
        }
        // It may have moved.
        let seen = self.entries_at(key, db).look(key.hash, key.bytes)?;
        (!self.hides(key, db, seen.slot)).then_some(seen)
    }

    /// True if a key stays, though nothing of it is alive.
    fn hides(&mut self, key: Key<'_>, db: u32, slot: Slot) -> bool {
        let now = self.now;
        self.leaves_dead() && collection::is_dead(self.entries_at(key, db), slot, &now)
    }

    /// True if dead data is hidden and not removed. Only a command that adds nothing may leave
    /// it: a key is never stored twice.
    fn leaves_dead(&self) -> bool {
        let writes = |row: &Command| row.flags.has(Flags::WRITE);
        !self.row.is_some_and(writes) && self.keyspace.is_paused()
    }

    /// Removes due members of a key, at most about `budget` of them.
    fn expire_members(
        &mut self,
        key: Key<'_>,
        db: u32,
        slot: Slot,
        budget: u32,
    ) -> MemberExpiryOutcome {
        let (keyspace, now) = (self.keyspace, self.now);
        let work = MemberExpiry {
            tick: now.tick,
            budget,
            quiet: self.leaves_dead(),
        };
        let hold = self.hold(key.shard);
        let mut due = hold.expire_members(db, slot, work, &mut |deadline| {
            keyspace.lateness_us.record(now.lateness_us(deadline), 1);
        });
        if let Some(garbage) = due.garbage.take() {
            self.drop_object(garbage);
        }
        due
    }

    /// True if something may be due in a locked shard.
    #[inline]
    pub(crate) fn may_have_due(&self) -> bool {
        let tick = self.now.tick;
        match &self.one {
            Some(hold) => hold.published() <= tick,
            None => self.many.iter().any(|(_, hold)| hold.published() <= tick),
        }
    }

    /// Removes due members of the command's keys, up to [`DRAIN_STEP`] of each. Returns whether
    /// others are due.
    pub(crate) fn drain_due_members(&mut self, row: &Command) -> bool {
        let mut positions = row.keys.positions(self.args);
        positions.any(|at| self.drain_key(at))
    }

    fn drain_key(&mut self, argument: usize) -> bool {
        self.drain_some(self.key(argument), self.session.db)
    }

    /// As [`find_at`](Self::find_at), for a command that visits all keys: it removes due members as
    /// long as the step's budget lasts. A collection of which others are due then counts as alive.
    pub(crate) fn find_draining(
        &mut self,
        key: Key<'_>,
        db: u32,
        budget: &mut Budget,
    ) -> Option<Slot> {
        while self.drain_some(key, db) {
            budget.spend(DRAIN_STEP as usize);
            if budget.is_spent() {
                return self.entries_at(key, db).find(key.hash, key.bytes);
            }
        }
        self.find_at(key, db)
    }

    /// Removes due members of a large collection, up to [`DRAIN_STEP`]. Returns whether others
    /// are due.
    fn drain_some(&mut self, key: Key<'_>, db: u32) -> bool {
        let now = self.now;
        let entries = self.entries_at(key, db);
        let Some(slot) = entries.find(key.hash, key.bytes) else {
            return false;
        };
        let (tag, deadline) = entries.tag_and_deadline(slot);
        // One that lies beside its key has few members.
        let may = value::is_timed(tag) && !entries.is_inline(slot);
        let is_due = may && deadline.is_some_and(|deadline| now.reached(deadline));
        is_due
            && !self.hides(key, db, slot)
            && self.expire_members(key, db, slot, DRAIN_STEP).backlog
    }

    /// Removes a key whose deadline was reached, although a pause may be on: it is about to end.
    pub(crate) fn remove_dead_key(&mut self, key: Key<'_>, db: u32) {
        let seen = self.entries_at(key, db).look(key.hash, key.bytes);
        if let Some(seen) = seen
            && let Some(deadline) = seen.deadline()
        {
            self.remove_for_good(key, db, seen.slot, deadline);
        }
    }

    #[cold]
    fn remove_dead(&mut self, key: Key<'_>, db: u32, slot: Slot, deadline: u64) {
        if !self.leaves_dead() {
            self.remove_for_good(key, db, slot, deadline);
        }
    }

    fn remove_for_good(&mut self, key: Key<'_>, db: u32, slot: Slot, deadline: u64) {
        self.keyspace
            .lateness_us
            .record(self.now.lateness_us(deadline), 1);
        let (at, hold) = self.on_any(key, db);
        if let Some(object) = hold.remove_dead(at, slot) {
            self.drop_object(object);
        }
    }

    /// True if the command may wait for its keys. It may not in a transaction.
    pub(crate) fn may_wait(&self) -> bool {
        self.seat.is_some() && self.session.waiter.is_some()
    }

    /// Has the command wait for its keys, if it [may](Self::may_wait).
    pub(crate) fn wait(&mut self, wanted: AwaitedKeys) -> bool {
        let waiter = self.seat.as_ref().and(self.session.waiter);
        if let Some(waiter) = waiter {
            let keyspace = self.keyspace;
            self.ticket = Some(keyspace.wait(self, waiter, wanted));
        }
        waiter.is_some()
    }

    /// The way in which accesses are recorded.
    #[inline]
    pub(crate) fn recency(&self) -> Recency {
        self.keyspace.recency()
    }

    /// Queues an event of the session's database that is no change by itself, if it is wanted.
    #[inline]
    pub(crate) fn event(&mut self, key: Key<'_>, cause: Cause) {
        let db = self.session.db;
        self.event_at(key, db, cause);
    }

    /// As [`event`](Self::event), of any database.
    #[inline]
    pub(crate) fn event_at(&mut self, key: Key<'_>, db: u32, cause: Cause) {
        self.hold(key.shard).announce(key, db, cause);
    }

    /// The command's name, for errors that say it.
    #[cold]
    pub(crate) fn name(&self) -> &'static str {
        self.row.map_or("", |row| row.name)
    }

    /// An argument as a signed integer.
    pub(crate) fn integer(&self, argument: usize) -> Result<i64, CommandError> {
        let bytes = self.args.get(argument).unwrap_or_default();
        tidewheel_resp::parse_i64(bytes).ok_or(CommandError::NOT_AN_INTEGER)
    }

    /// True if an argument is this word, in any case.
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
