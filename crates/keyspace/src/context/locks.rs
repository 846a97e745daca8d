//! Locks the shards of a command, and releases them.

use tidewheel_resp::Writer;

use super::{Context, Key};
use crate::call::{Call, MANY_KEYS};
use crate::claims::{Blocked, ShardSet};
use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::order;
use crate::rows::KeySpec;
use crate::session::Waiter;
use crate::shard::{CHANGED, Hold, meet_all};
use crate::value::Entries;

/// Success if the shards are locked; else another has one of them for long.
pub(crate) type Locked = Result<(), Blocked>;

/// One in this many holds of a single key is measured.
pub(crate) const HOLDS_PER_SAMPLE: u32 = 32;

impl<'a, 'b> Context<'a, 'b> {
    /// Locks the shards of a command's keys, which `keys` finds among the arguments. Before that,
    /// it copies the argument that will be stored, if it is large: `stored_argument` is its
    /// position. `call` may know hashes of the keys.
    #[inline(always)]
    pub(crate) fn lock_keys(
        &mut self,
        keys: &KeySpec,
        stored_argument: u32,
        call: &Call<'b>,
    ) -> Locked {
        let n = self.args.len();
        if keys.first == 0 {
            return Ok(());
        }
        let first = keys.first as usize;
        // DEL of one key is as cheap as GET.
        let only =
            keys.last == keys.first as i32 || keys.last == -1 && n <= first + keys.step as usize;
        let only = only && keys.counted | keys.stored_from == 0;
        if only {
            if stored_argument != 0 {
                self.prepare(stored_argument as usize);
            }
            let args = self.args;
            let hash_of_key = || self.keyspace.hash(args.get(first).unwrap_or_default());
            let hash = match *call.hashes {
                [hash] => hash,
                _ => hash_of_key(),
            };
            debug_assert_eq!(hash, hash_of_key());
            self.step_in_hashed(hash)
        } else {
            self.lock_several(keys, stored_argument, call)
        }
    }

    /// As [`lock_keys`](Self::lock_keys), of a call that may have several keys.
    #[inline(never)]
    fn lock_several(&mut self, keys: &KeySpec, stored_argument: u32, call: &Call<'b>) -> Locked {
        if stored_argument != 0 {
            keys.positions(self.args)
                .for_each(|at| self.prepare(at + 1));
        }
        let (args, keyspace) = (self.args, self.keyspace);
        self.hashes = call.hashes;
        if call.hashes.is_empty() {
            let keys = keys.positions(args).filter_map(|at| args.get(at));
            return self.step_in_shards(keys.map(|key| keyspace.shard_of(keyspace.hash(key))));
        }
        self.step_in_shards(call.hashes.iter().map(|hash| keyspace.shard_of(*hash)))?;
        if call.hashes.len() >= MANY_KEYS && keyspace.is_worth_prefetching() {
            self.prefetch(call.hashes);
        }
        Ok(())
    }

    /// Asks for the index and the entries of keys whose shards are locked, and waits for neither.
    #[inline(never)]
    fn prefetch(&mut self, hashes: &[u64]) {
        let (keyspace, db) = (self.keyspace, self.session.db);
        for &hash in hashes {
            let hold = self.hold(keyspace.shard_of(hash));
            hold.entries(db).warm_index(hash);
        }
        for &hash in hashes {
            let hold = self.hold(keyspace.shard_of(hash));
            hold.entries(db).warm_entry(hash);
        }
    }

    /// Locks the shard of a hash.
    #[inline(always)]
    fn lock_hashed(&mut self, hash: u64) -> Locked {
        let shard = self.keyspace.shard_of(hash);
        let mut guard = match self.keyspace.shards[shard].try_lock_in_order() {
            Some(guard) => guard,
            None => self.wait_for(shard)?,
        };
        guard.meet(&mut self.now);
        guard.holds = guard.holds.wrapping_add(1);
        // Reading the clock twice costs as much as a whole GET: sample.
        if guard.holds.is_multiple_of(HOLDS_PER_SAMPLE) {
            self.held_since_ns = Some(self.keyspace.hooks.stopwatch_ns());
        }
        (self.shard, self.hash) = (shard, hash);
        self.one = Some(guard);
        Ok(())
    }

    /// Locks the shard of a key, and gives up soon if it is locked: for a caller that can come
    /// back.
    pub(crate) fn lock_briefly(&mut self, key: &[u8]) -> Locked {
        let hash = self.keyspace.hash(key);
        let shard = self.keyspace.shard_of(hash);
        let hold = self.keyspace.shards[shard].lock_briefly();
        let on = || Blocked::on(ShardSet::of([shard].into_iter()));
        let mut hold = hold.ok_or_else(on)?;
        hold.meet(&mut self.now);
        self.one = Some(hold);
        (self.shard, self.hash) = (shard, hash);
        Ok(())
    }

    /// Waits for a shard's lock: briefly if the command's client can be parked.
    #[cold]
    fn wait_for(&mut self, shard: usize) -> Result<Hold<'a>, Blocked> {
        let of = &self.keyspace.shards[shard];
        if !self.may_park() {
            return Ok(of.lock());
        }
        of.lock_briefly()
            .ok_or_else(|| Blocked::on(ShardSet::of([shard].into_iter())))
    }

    /// True if the command's client can be parked, because shards are locked for long.
    fn may_park(&self) -> bool {
        self.session.waiter.is_some() && !self.is_long
    }

    /// Locks one shard for a command that visits them all.
    pub(crate) fn lock_shard(&mut self, shard: usize) -> Result<(), CommandError> {
        match self.wait_for(shard) {
            Ok(mut hold) => {
                hold.meet(&mut self.now);
                self.one = Some(hold);
            }
            Err(blocked) => return self.unless_blocked(Err(blocked)),
        }
        self.held_since_ns = Some(self.keyspace.hooks.stopwatch_ns());
        self.shard = shard;
        Ok(())
    }

    /// Unlocks, then wakes sleepers whose deadline became earlier. A handler that needs a large
    /// value later must share it (`Arc`) before.
    #[inline(always)]
    pub(crate) fn unlock(&mut self) {
        if self.kept {
            return;
        }
        if let Some(guard) = self.one.take() {
            if guard.has_ready() && !self.defers {
                return self.serve_one(guard);
            }
            if let Some(since) = self.held_since_ns.take() {
                self.keyspace.record_hold(since);
            }
            if guard.after() == 0 {
                drop(guard);
            } else {
                self.unlock_and_tell(guard);
            }
        } else if !self.many.is_empty() {
            self.unlock_many();
        }
    }

    /// Unlocks the only shard. Then wakes sleepers whose deadline became earlier, and tells readers
    /// what is invalid.
    #[inline(never)]
    fn unlock_and_tell(&mut self, mut guard: Hold<'a>) {
        if guard.after() & CHANGED != 0 {
            guard = self.record_one(guard);
        }
        let wake = guard.take_wake();
        let invalid = guard.take_invalid();
        drop(guard);
        if wake {
            self.keyspace.wake(self.shard);
        }
        if !invalid.is_empty() {
            self.keyspace.tell_invalid(self.session.waiter, invalid);
        }
    }

    /// Releases the locks for work that takes long, if they are not a transaction's.
    pub(crate) fn step_out(&mut self) {
        self.unlock();
        if !self.kept {
            order::assert_no_shard_is_held();
        }
    }

    /// Locks the shard of one key, unless it is locked for a transaction.
    ///
    /// # Errors
    ///
    /// [`BLOCKED`](CommandError::BLOCKED). This goes for all functions of that kind: then the
    /// handler ends, and has changed nothing.
    pub(crate) fn step_in(&mut self, key: &[u8]) -> Result<(), CommandError> {
        let locked = self.step_in_hashed(self.keyspace.hash(key));
        self.unless_blocked(locked)
    }

    /// Notes the shards that a command is blocked on, if it is.
    fn unless_blocked(&mut self, locked: Locked) -> Result<(), CommandError> {
        locked.map_err(|blocked| {
            self.blocked = Some(blocked);
            CommandError::BLOCKED
        })
    }

    #[inline(always)]
    fn step_in_hashed(&mut self, hash: u64) -> Locked {
        if self.kept {
            return Ok(());
        }
        self.lock_hashed(hash)
    }

    /// Locks the shards of several keys, in their order, unless they are locked for a transaction.
    pub(crate) fn step_in_many<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<(), CommandError> {
        let keyspace = self.keyspace;
        let shards = keys.map(|key| keyspace.shard_of(keyspace.hash(key)));
        let locked = self.step_in_shards(shards);
        self.unless_blocked(locked)
    }

    fn step_in_shards(&mut self, shards: impl Iterator<Item = usize>) -> Locked {
        if !self.kept {
            let wanted = ShardSet::of(shards);
            self.many = self.keyspace.lock_set(wanted, self.may_park())?;
            meet_all(&mut self.many, &mut self.now);
            self.held_since_ns = Some(self.keyspace.hooks.stopwatch_ns());
        }
        Ok(())
    }

    /// Locks all shards, in their order. Not for commands that a transaction lends its locks.
    pub(crate) fn step_in_all(&mut self) -> Result<(), CommandError> {
        debug_assert!(!self.kept, "the row says that it reaches");
        let locked = self.step_in_shards(0..self.keyspace.shards());
        self.unless_blocked(locked)
    }

    /// Makes room for `bytes` bytes, after [`step_out`](Self::step_out). A transaction, whose locks
    /// are kept, evicts nothing.
    ///
    /// # Errors
    ///
    /// If there is no room.
    pub(crate) fn make_room(&mut self, bytes: usize) -> Result<(), CommandError> {
        if !self.keyspace.lacks(bytes) {
            return Ok(());
        }
        match &mut self.seat {
            Some(seat) if !self.kept => {
                let made = self.keyspace.make_room_for_bytes(seat, bytes, &self.now);
                made.map(|_| ())
            }
            _ => Err(CommandError::OUT_OF_MEMORY),
        }
    }

    /// Does long work that needs no keys. The locks and the seat are left meanwhile, so that
    /// exclusive users need not wait for it; not within a transaction.
    pub(crate) fn outside<R>(&mut self, work: impl FnOnce() -> R) -> R {
        self.unlock();
        if let Some(seat) = &mut self.seat {
            seat.leave();
        }
        let result = work();
        if let Some(seat) = &mut self.seat {
            seat.enter();
        }
        result
    }

    /// Unlocks the only shard, and serves the clients that wait for its ready keys.
    #[cold]
    fn serve_one(&mut self, mut guard: Hold<'a>) {
        if guard.after() & CHANGED != 0 {
            guard = self.record_one(guard);
        }
        self.many = vec![(self.shard, guard)];
        self.unlock_many();
    }

    fn unlock_many(&mut self) {
        self.record();
        if let Some(since) = self.held_since_ns.take() {
            self.keyspace.record_hold(since);
        }
        let locks = std::mem::take(&mut self.many);
        if !self.defers && locks.iter().any(|(_, hold)| hold.has_ready()) {
            self.keyspace.serve_and_unlock(self.now, locks);
        } else {
            self.keyspace.unlock_shards(locks, self.session.waiter);
        }
    }

    /// Lends it a transaction's locks.
    pub(crate) fn keep(&mut self, locks: Vec<(usize, Hold<'a>)>) {
        self.many = locks;
        self.kept = true;
    }

    /// Takes a transaction's locks back.
    pub(crate) fn hand_back(&mut self) -> Vec<(usize, Hold<'a>)> {
        std::mem::take(&mut self.many)
    }

    /// True if a shard is locked.
    pub(crate) fn is_locked(&self, shard: usize) -> bool {
        match self.one {
            Some(_) => self.shard == shard,
            None => (self.many)
                .binary_search_by_key(&shard, |(shard, _)| *shard)
                .is_ok(),
        }
    }

    /// The shard of a key, which is locked.
    pub(crate) fn hold_of(&mut self, key: Key<'_>) -> &mut Hold<'a> {
        self.hold(key.shard)
    }

    #[inline]
    pub(super) fn hold(&mut self, shard: usize) -> &mut Hold<'a> {
        match &mut self.one {
            Some(guard) => {
                debug_assert_eq!(self.shard, shard, "the row's keys cover every key");
                guard
            }
            None => place_of(&mut self.many, &mut self.last, shard),
        }
    }

    /// The shards that are locked.
    pub(crate) fn locked_shards(&self) -> ShardSet {
        match self.one {
            Some(_) => ShardSet::of([self.shard].into_iter()),
            None => ShardSet::of(self.many.iter().map(|(shard, _)| *shard)),
        }
    }

    /// Bytes that collections and long strings take in the session's database, in the shards that
    /// are locked.
    pub(crate) fn object_bytes(&self) -> usize {
        let db = self.session.db;
        match &self.one {
            Some(hold) => hold.object_bytes(db),
            None => self
                .many
                .iter()
                .map(|(_, hold)| hold.object_bytes(db))
                .sum(),
        }
    }

    /// The one shard that is locked.
    pub(crate) fn locked(&mut self) -> &mut Hold<'a> {
        match &mut self.one {
            Some(guard) => guard,
            None => unreachable!("the caller has locked one shard"),
        }
    }
}

impl Keyspace {
    /// Locks the shards of several keys, in shard order.
    ///
    /// # Errors
    ///
    /// If another has one of them for long.
    pub(crate) fn lock_shards_of<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<Vec<(usize, Hold<'_>)>, Blocked> {
        self.lock_set(self.shards_of(keys), true)
    }

    /// The shards of some keys.
    pub(crate) fn shards_of<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> ShardSet {
        ShardSet::of(keys.map(|key| self.shard_of(self.hash(key))))
    }

    /// Locks shards, in their order: waits `briefly` for each, or for as long as it takes.
    pub(crate) fn lock_set(
        &self,
        wanted: ShardSet,
        briefly: bool,
    ) -> Result<Vec<(usize, Hold<'_>)>, Blocked> {
        let mut guards = Vec::with_capacity(wanted.len());
        for at in wanted.iter() {
            let shard = &self.shards[at];
            // Another call of several keys often has one of them.
            let guard = match briefly {
                true => shard.lock_briefly(),
                false => Some(shard.lock_soon()),
            };
            guards.push((at, guard.ok_or_else(|| Blocked::on(wanted))?));
        }
        Ok(guards)
    }

    /// Unlocks shards. Then wakes sleepers whose deadline became earlier, and tells readers what is
    /// invalid because of what `author` has done.
    pub(crate) fn unlock_shards(&self, locks: Vec<(usize, Hold<'_>)>, author: Option<Waiter>) {
        let (mut to_wake, mut invalid) = (Vec::new(), Vec::new());
        for (shard, mut guard) in locks {
            if guard.after() != 0 {
                if guard.take_wake() {
                    to_wake.push(shard);
                }
                invalid.append(&mut guard.take_invalid());
            }
        }
        to_wake.into_iter().for_each(|shard| self.wake(shard));
        if !invalid.is_empty() {
            self.tell_invalid(author, invalid);
        }
    }
}

/// The shards of a command's keys, for reading several keys at once.
pub(crate) struct LockedShards<'x, 'a> {
    one: Option<&'x Hold<'a>>,
    many: &'x [(usize, Hold<'a>)],
    db: u32,
}

impl<'x> LockedShards<'x, '_> {
    /// The session's entries in the key's shard.
    pub(crate) fn entries(&self, key: Key<'_>) -> &'x Entries {
        match self.one {
            Some(hold) => hold.entries(self.db),
            None => match self
                .many
                .binary_search_by_key(&key.shard, |(shard, _)| *shard)
            {
                Ok(at) => self.many[at].1.entries(self.db),
                Err(_) => unreachable!("the row's keys cover every key"),
            },
        }
    }
}

impl<'a, 'b> Context<'a, 'b> {
    /// The locked shards, and the reply.
    pub(crate) fn apart(&mut self) -> (LockedShards<'_, 'a>, &mut Writer) {
        let several = LockedShards {
            one: self.one.as_ref(),
            many: &self.many,
            db: self.session.db,
        };
        (several, self.out)
    }
}

/// The locked shard among several. Mostly it is the one that was used last.
#[inline]
pub(super) fn place_of<'m, 'a>(
    many: &'m mut [(usize, Hold<'a>)],
    last: &mut usize,
    shard: usize,
) -> &'m mut Hold<'a> {
    if many.get(*last).is_none_or(|(other, _)| *other != shard) {
        *last = number_of(many, shard);
    }
    &mut many[*last].1
}

fn number_of(many: &[(usize, Hold<'_>)], shard: usize) -> usize {
    match many.binary_search_by_key(&shard, |(shard, _)| *shard) {
        Ok(at) => at,
        Err(_) => unreachable!("the row's keys cover every key, and their shards are locked"),
    }
}
