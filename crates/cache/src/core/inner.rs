//! The shared state of a cache: its shards, the rules by which they act, its time, what it has
//! counted, and who works for it.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;

use tidewheel_time::{Moment, NEVER, TICK_NANOS};

use crate::core::cell::ShardCell;
use crate::core::hooks::Hooks;
use crate::core::refreshes::Refreshes;
use crate::core::requests::Requests;
use crate::core::workers::Workers;
use crate::events::delivery::Delivery;
use crate::shard::Shard;
use crate::shard::emptied::Entries;
use crate::shard::rules::{Hashed, Rules};
use crate::stats::{Counters, LATENESS_WINDOWS, Stats};
use crate::sync::{AtomicBool, ReadGuard};
use crate::time::{Bound, Time};

/// More than any deadline is ahead, in nanoseconds: they have 60 bits.
const AHEAD_MAX: u64 = 1 << 62;

pub(crate) struct Inner<K, V, S> {
    pub(crate) shards: Box<[ShardCell<K, V>]>,
    /// Bits of a hash below those that choose the shard, less one.
    shift: u32,
    pub(crate) rules: Rules<K, V, S>,
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
        let lent = rules.account.first_loan();
        let config = &rules.config;
        let stores_plainly = config.stores_plainly();
        let (new_store, huge_pages) = (config.new_store, config.huge_pages);
        let ahead = match hooks.on_use {
            Some(_) => AHEAD_MAX,
            None => config.grace.saturating_mul(TICK_NANOS).min(AHEAD_MAX),
        };
        Arc::new(Self {
            shards: (0..shards)
                .map(|_| ShardCell::new(lent, new_store, huge_pages))
                .collect(),
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
    pub(crate) fn cell(&self, hash: Hashed) -> &ShardCell<K, V> {
        &self.shards[self.number(hash)]
    }

    /// Locks a shard for reading.
    #[inline]
    pub(crate) fn read<'a>(&self, cell: &'a ShardCell<K, V>) -> ReadGuard<'a, Shard<K, V>> {
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
/// hold](crate::core::cell::Hold), and a driver from [its step](crate::drive::step).
impl<K, V, S> Inner<K, V, S> {
    /// The time at which a call begins that holds no shard.
    pub(crate) fn now(&self) -> Moment {
        self.time.now()
    }

    /// Locks a shard for reading, and reads the clock under the lock.
    pub(crate) fn read_now<'a>(
        &self,
        cell: &'a ShardCell<K, V>,
    ) -> (ReadGuard<'a, Shard<K, V>>, Moment) {
        let shard = self.read(cell);
        let now = self.time.now();
        (shard, now)
    }

    /// The time, for a look at an entry. Where none has a deadline, the clock is not read.
    #[inline(always)]
    pub(crate) fn time_in(&self, cell: &ShardCell<K, V>) -> Bound {
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
