//! The shared state of a cache: its shards behind their locks, the rules by which they act, its
//! time, what it has counted, and who works for it; and a change of a shard: one hold of its lock,
//! and what that leaves to be done afterwards.

use std::hash::{BuildHasher, Hash};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use equivalent::Equivalent;
use tidewheel_store::{Lens, TypedStore};
use tidewheel_time::{Moment, NEVER, Soonest, TICK_NANOS};

use crate::core::delivery::Delivery;
use crate::core::hooks::Hooks;
use crate::core::refreshes::Refreshes;
use crate::core::requests::Requests;
use crate::core::workers::Workers;
use crate::shard::effects::{Entries, Garbage, ShardRequest};
use crate::shard::flight::Flight;
use crate::shard::rules::{Hashed, Rules};
use crate::shard::{Shard, UNTIDY};
use crate::stats::{Counters, LATENESS_WINDOWS, Stats};
use crate::sync::{AtomicBool, Ordering::Relaxed, ReadGuard, ShardLock, WriteGuard, holds_a_shard};
use crate::time::{Bound, Time};

/// More than any deadline is ahead, in nanoseconds: they have 60 bits.
const AHEAD_MAX: u64 = 1 << 62;

pub(crate) struct Inner<K, V, S> {
    pub(crate) shards: Box<[ShardCell<K, V, S>]>,
    /// Bits of a hash below those that choose the shard, less one.
    shift: u32,
    pub(crate) rules: Arc<Rules<K, V, S>>,
    pub(crate) time: Time,
    pub(crate) hooks: Hooks<K, V, S>,
    /// What threads count that hold no shard.
    pub(crate) counters: Counters,
    pub(crate) delivery: Delivery<K, V>,
    pub(crate) requests: Requests,
    #[cfg(feature = "metrics")]
    pub(crate) published: crate::core::metrics::Published,
    pub(crate) refreshes: Refreshes<V>,
    pub(crate) workers: Workers,
    pub(crate) closed: AtomicBool,
    /// The number of nanoseconds by which an entry's deadline must be ahead for a read that looks
    /// at nothing else. Where each use changes the deadline, there are no such reads: then it is
    /// more than any deadline is ahead.
    pub(crate) ahead: u64,
    /// True if no setting but the time to live changes an entry that is stored.
    pub(crate) stores_plainly: bool,
}

impl<K, V, S> Inner<K, V, S> {
    pub(crate) fn new(
        shards: usize,
        rules: Rules<K, V, S>,
        time: Time,
        hooks: Hooks<K, V, S>,
        delivery: Delivery<K, V>,
    ) -> Arc<Self> {
        let rules = Arc::new(rules);
        let config = &rules.config;
        let stores_plainly = config.stores_plainly();
        let ahead = match hooks.on_use {
            Some(_) => AHEAD_MAX,
            None => config.grace.saturating_mul(TICK_NANOS).min(AHEAD_MAX),
        };
        Arc::new(Self {
            shards: (0..shards).map(|_| ShardCell::new(&rules)).collect(),
            shift: 63 - shards.ilog2(),
            time,
            refreshes: Refreshes::new(config.refresh_queue, config.refresh_parallelism()),
            rules,
            hooks,
            counters: Counters::new(),
            delivery,
            requests: Requests::new(),
            #[cfg(feature = "metrics")]
            published: crate::core::metrics::Published::default(),
            workers: Workers::new(),
            closed: AtomicBool::new(false),
            ahead,
            stores_plainly,
        })
    }

    /// Tells this cache from others while it is in use.
    #[inline]
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    #[inline]
    pub(crate) fn number(&self, hash: Hashed) -> usize {
        // In two steps: with one shard the shift is by all 64 bits.
        (hash.0 >> 1 >> self.shift) as usize
    }

    #[inline]
    pub(crate) fn cell(&self, hash: Hashed) -> &ShardCell<K, V, S> {
        &self.shards[self.number(hash)]
    }

    /// Locks a shard for reading.
    #[inline]
    pub(crate) fn read<'a>(&self, cell: &'a ShardCell<K, V, S>) -> ReadGuard<'a, Shard<K, V, S>> {
        cell.lock.read(self.id())
    }

    /// Adds up what was counted. Not a point in time: shard after shard.
    pub(crate) fn stats(&self) -> Stats {
        let mut counts = self.counters.sums();
        let mut lateness = [0; LATENESS_WINDOWS];
        let (mut entries, mut weight, mut negatives) = (0, 0, 0);
        for cell in &self.shards {
            let shard = self.read(cell);
            shard.effects.counts.add_to(&mut counts, &mut lateness);
            entries += shard.store.len() as u64;
            weight += shard.store.weight();
            negatives += shard.negatives.len();
        }
        Stats {
            refreshes_queued: self.refreshes.waiting() as u64,
            refreshes_running: self.refreshes.running() as u64,
            negatives,
            entries,
            weight,
            lateness,
            backlog: self.overdue(),
            ..Stats::counted(counts)
        }
    }

    /// The tags of a whole shard's entries are used so much less.
    pub(crate) fn release_tags(&self, entries: &dyn Entries<K, V>) {
        entries.each_label(&mut |label| self.rules.tags.release(label));
    }
}

/// The time, for readers and for callers who hold no shard. A change of a shard gets it from [its
/// hold](crate::core::inner::Hold), and a driver from [its step](crate::drive::step).
impl<K, V, S> Inner<K, V, S> {
    /// The time at which a call begins that holds no shard.
    pub(crate) fn now(&self) -> Moment {
        self.time.now()
    }

    /// Locks a shard for reading, and reads the clock under the lock.
    pub(crate) fn read_now<'a>(
        &self,
        cell: &'a ShardCell<K, V, S>,
    ) -> (ReadGuard<'a, Shard<K, V, S>>, Moment) {
        let shard = self.read(cell);
        let now = self.time.now();
        (shard, now)
    }

    /// The time, for a look at an entry. Where none has a deadline, the clock is not read.
    #[inline(always)]
    pub(crate) fn time_in(&self, cell: &ShardCell<K, V, S>) -> Bound {
        if cell.has_deadlines() {
            self.bound()
        } else {
            Bound::NONE
        }
    }

    /// A time that engine time has not passed, for a look at an entry.
    #[inline(always)]
    pub(crate) fn bound(&self) -> Bound {
        self.time.bound()
    }

    /// Returns the tick at which the earliest shard needs the driver.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let shards = self.shards.iter();
        let next = shards.map(|cell| cell.next_deadline.get()).min();
        next.filter(|next| *next != NEVER)
    }

    pub(crate) fn until(&self, tick: u64) -> Duration {
        self.time.now().until(tick)
    }

    /// Returns for how long the earliest deadline has been waiting for the driver.
    pub(crate) fn overdue(&self) -> Duration {
        let next = self.next_deadline();
        let ticks = next.map_or(0, |next| self.time.now().tick().saturating_sub(next));
        Duration::from_millis(ticks)
    }
}

impl<K: Hash, V, S: BuildHasher> Inner<K, V, S> {
    #[inline]
    pub(crate) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> Hashed {
        self.rules.hash(key)
    }
}

/// A shard with what others read without its lock.
///
/// The lock's word is in a cache line of its own. Threads that read the same shard take that line
/// from each other, and all else that they look at stays with each of them.
#[repr(C, align(128))]
pub(crate) struct ShardCell<K, V, S> {
    /// Reads the store without the lock, where that is possible.
    pub(crate) lens: Option<Lens<K, V>>,
    /// A lower bound of the shard's next deadline, in ticks; `u64::MAX` for none.
    pub(crate) next_deadline: Soonest,
    /// True if enough was removed to make tidying worth while.
    pub(crate) untidy: AtomicBool,
    pub(crate) lock: ShardLock<Shard<K, V, S>>,
}

impl<K, V, S> ShardCell<K, V, S> {
    fn new(rules: &Arc<Rules<K, V, S>>) -> Self {
        // Under shuttle all go the way of the lock: it knows nothing of the other one.
        let mut store = if cfg!(all(shuttle, feature = "shuttle")) {
            TypedStore::new()
        } else {
            (rules.config.new_store)()
        };
        if rules.config.huge_pages {
            store.use_huge_pages();
        }
        store.defer_frees();
        Self {
            lens: store.lens(),
            lock: ShardLock::new(Shard::new(Arc::clone(rules), store)),
            next_deadline: Soonest::new(),
            untidy: AtomicBool::new(false),
        }
    }

    /// Returns whether an entry of the shard may have a deadline.
    #[inline(always)]
    pub(crate) fn has_deadlines(&self) -> bool {
        self.next_deadline.get() != u64::MAX
    }

    /// Returns whether tidying has become worth while and the driver was not told.
    #[inline(always)]
    pub(crate) fn became_untidy(&self, shard: &Shard<K, V, S>) -> bool {
        shard.removals >= UNTIDY && !self.untidy.load(Relaxed)
    }
}

/// A hold gives up its shard only where it ends.
const HELD: &str = "held to the end";

/// A shard that is held for writing. When it is dropped, though a change has panicked, it
/// publishes the next deadline, drops what was removed, and wakes who must know.
pub(crate) struct Hold<'a, K, V, S> {
    inner: &'a Inner<K, V, S>,
    cell: &'a ShardCell<K, V, S>,
    shard: Option<WriteGuard<'a, Shard<K, V, S>>>,
}

impl<K, V, S> Deref for Hold<'_, K, V, S> {
    type Target = Shard<K, V, S>;

    #[inline(always)]
    fn deref(&self) -> &Shard<K, V, S> {
        self.shard.as_ref().expect(HELD)
    }
}

impl<K, V, S> DerefMut for Hold<'_, K, V, S> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Shard<K, V, S> {
        self.shard.as_mut().expect(HELD)
    }
}

impl<K, V, S> Drop for Hold<'_, K, V, S> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(shard) = self.shard.take() {
            self.inner.release(self.cell, shard);
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Hold<'_, K, V, S> {
    /// Ends a caller's hold. Afterwards, unlocked:
    ///
    /// 1. If the entry that was stored last lacks weight, it takes that from other shards, or
    ///    evicts.
    /// 2. If the capacity has shrunk, it takes back what shards owe.
    /// 3. If the queue of events is full, it delivers some, unless this thread holds a shard of
    ///    another cache, which the listener may need.
    #[inline(always)]
    pub(crate) fn settle(mut self) {
        let Some(mut shard) = self.shard.take() else {
            return;
        };
        let (inner, cell) = (self.inner, self.cell);
        let wanted = std::mem::take(&mut shard.effects.wanted);
        let events = !shard.effects.outbox.is_empty();
        if shard.leaves_nothing() && !cell.became_untidy(&shard) {
            shard.store.end_change();
            drop(shard);
        } else {
            inner.release(cell, shard);
        }
        if wanted != ShardRequest::Nothing || events {
            inner.help(cell, wanted);
        }
    }

    /// As [`settle`](Self::settle), of a hold that has only overwritten a value, with nothing in
    /// the way.
    #[inline(always)]
    pub(crate) fn settle_overwritten(mut self) {
        if self.republish {
            return;
        }
        self.store.end_change();
        self.shard = None;
    }
}

impl<K, V, S> Inner<K, V, S> {
    /// Locks a shard for writing.
    #[inline(always)]
    pub(crate) fn begin<'a>(&'a self, cell: &'a ShardCell<K, V, S>) -> Hold<'a, K, V, S> {
        let mut shard = cell.lock.write(self.id());
        shard.changes = shard.changes.wrapping_add(1);
        shard.store.begin_change();
        Hold {
            inner: self,
            cell,
            shard: Some(shard),
        }
    }

    /// Changes a shard under its lock.
    ///
    /// For drivers, which must not be kept waiting by a listener, nor call one while they drive;
    /// and for changes by which nothing leaves and nothing is stored.
    pub(crate) fn hold<R>(
        &self,
        cell: &ShardCell<K, V, S>,
        change: impl FnOnce(&mut Shard<K, V, S>) -> R,
    ) -> R {
        change(&mut self.begin(cell))
    }

    /// As [`begin`](Self::begin), and reads the clock under the lock.
    #[inline(always)]
    fn begin_now<'a>(&'a self, cell: &'a ShardCell<K, V, S>) -> (Hold<'a, K, V, S>, Moment) {
        // A user's clock may take its time.
        let given = self.time.given_now();
        let hold = self.begin(cell);
        (hold, given.unwrap_or_else(|| self.time.now()))
    }

    /// As [`begin`](Self::begin), for an entry that is stored under this hash, with the time if
    /// that matters. The clock is read under the lock if it is not a user's: meanwhile the memory
    /// comes that was asked for.
    #[inline(always)]
    pub(crate) fn begin_for<'a>(
        &'a self,
        cell: &'a ShardCell<K, V, S>,
        hash: Hashed,
        needs_time: bool,
    ) -> (Hold<'a, K, V, S>, Moment) {
        let early = match needs_time {
            true => self.time.given_now(),
            false => Some(Moment(0)),
        };
        let hold = self.begin(cell);
        hold.store.expect(hash.place());
        (hold, early.unwrap_or_else(|| self.time.now()))
    }

    /// As [`hold`](Self::hold), at a time that was read under the lock: for who claims a key. Once
    /// it leads a flight it must not wait for a listener, which may wait for the flight.
    pub(crate) fn hold_now<R>(
        &self,
        cell: &ShardCell<K, V, S>,
        change: impl FnOnce(&mut Shard<K, V, S>, Moment) -> R,
    ) -> R {
        let (mut hold, now) = self.begin_now(cell);
        change(&mut hold, now)
    }

    /// Ends a hold of a shard.
    #[inline(never)]
    fn release(&self, cell: &ShardCell<K, V, S>, mut shard: WriteGuard<'_, Shard<K, V, S>>) {
        let mut earlier = None;
        if shard.republish {
            shard.republish = false;
            let next = shard.next_deadline();
            if next < shard.published {
                earlier = Some(next);
            }
            shard.published = next;
            cell.next_deadline.publish(next);
        }
        let untidy = cell.became_untidy(&shard);
        if untidy {
            cell.untidy.store(true, Relaxed);
        }
        let garbage = shard.effects.garbage.take();
        let freed = shard.store.take_freed();
        let events = std::mem::take(&mut shard.effects.outbox.news);
        shard.store.end_change();
        drop(shard);
        for store in garbage.iter().flat_map(Garbage::stores) {
            self.release_tags(&**store);
        }
        // Others are woken before user code is run, which may take its time.
        if let Some(next) = earlier {
            self.requests.lowered(next);
        }
        if untidy {
            self.requests.tidy_wanted();
        }
        if events {
            self.requests.events_wanted(&self.delivery.wanted);
        }
        if let Some(garbage) = garbage {
            garbage.discard(&self.counters);
        }
        // Seldom there: asked here, it is not asked field by field.
        if let Some(freed) = freed {
            drop(freed);
        }
    }

    /// Returns whether a thread that caused events must deliver some because the queue is full.
    /// Never while it holds a lock of another cache, which the listener may need: then the next
    /// writer delivers.
    #[inline]
    pub(crate) fn must_help(&self) -> bool {
        let room = &self.rules.events;
        room.must_wait() && !room.is_async() && !holds_a_shard()
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Changes a shard as a caller, at a time that was read under the lock, and
    /// [settles](Hold::settle) what that leaves to do.
    pub(crate) fn change<R>(
        &self,
        cell: &ShardCell<K, V, S>,
        change: impl FnOnce(&mut Shard<K, V, S>, Moment) -> R,
    ) -> R {
        let (mut hold, now) = self.begin_now(cell);
        let result = change(&mut hold, now);
        hold.settle();
        result
    }

    /// Does for other shards, and for the listener, what a caller's hold has left to do.
    #[cold]
    #[inline(never)]
    fn help(&self, cell: &ShardCell<K, V, S>, wanted: ShardRequest) {
        match wanted {
            ShardRequest::Nothing => {}
            ShardRequest::Room(weight) => self.find_room(cell, weight),
            ShardRequest::RepayDebt => {
                self.collect_some();
            }
        }
        if self.must_help() {
            self.deliver(true);
        }
    }

    /// As [`change`](Self::change), and again after each latch that is in the way of the change has
    /// opened.
    pub(crate) fn change_unlatched<R>(
        &self,
        cell: &ShardCell<K, V, S>,
        mut change: impl FnMut(&mut Shard<K, V, S>, Moment) -> Result<R, Arc<Flight<V>>>,
    ) -> R {
        loop {
            match self.change(cell, &mut change) {
                Ok(result) => return result,
                Err(latch) => latch.wait_open(),
            }
        }
    }

    /// As [`change`](Self::change), of one key, which may turn out to be none: only where `find`
    /// finds what to change, it waits for a closure that computes the key's value, and supersedes a
    /// load.
    pub(crate) fn change_key<Q: Equivalent<K> + ?Sized, T, R>(
        &self,
        hash: Hashed,
        key: &Q,
        find: impl Fn(&Shard<K, V, S>, Moment) -> Option<T>,
        change: impl FnOnce(&mut Shard<K, V, S>, T, Moment) -> R,
    ) -> Option<R> {
        let mut change = Some(change);
        self.change_unlatched(self.cell(hash), |shard, now| {
            let Some(found) = find(shard, now) else {
                return Ok(None);
            };
            if let Some(latch) = shard.writing(hash, |stored| key.equivalent(stored)) {
                return Err(latch);
            }
            let change = change.take().expect("runs once");
            Ok(Some(change(shard, found, now)))
        })
    }
}
