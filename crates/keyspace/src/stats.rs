//! A reading of the keyspace's counters.

use tidewheel_time::Quantiles;

use crate::claims::ShardAction;
use crate::keyspace::Keyspace;
use crate::reading::{DatabaseReading, DatabaseStats, ShardReading};
use crate::shard::{Counters, NEVER};
use crate::time::{Now, Time};

/// A reading of the keyspace's counters. Shards are read one after the other, not at one instant.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Reads that found their key.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Keys removed because their deadline was reached, however it was noticed.
    pub expired: u64,
    /// Keys whose deadline is reached, and which are not removed yet.
    pub overdue: u64,
    /// Members removed because their deadline was reached.
    pub expired_members: u64,
    /// Keys removed to free memory.
    pub evicted: u64,
    /// Changes of keys since the start.
    pub changes: u64,
    /// Microseconds from a key's deadline to its removal.
    pub lateness_us: Quantiles,
    /// The same by powers of two: `[0]` counts zeros, `[i]` those of `2^(i-1) ..< 2^i`, the last
    /// also all above.
    pub lateness_us_by_power: [u64; 32],
    /// Shards with keys that are due, because a pass had no budget left for them.
    pub backlog_shards: usize,
    /// Milliseconds by which the latest shard lags; 0 without a backlog.
    pub backlog_ms: u64,
    /// Lower bound of the earliest deadline in clock ticks; `u64::MAX` without one.
    pub next_deadline: u64,
    /// Passes that ended because their budget was used up.
    pub budget_hits: u64,
    /// Nanoseconds for which shard locks were held: every hold of expiry, several keys or whole
    /// stores, and one in 32 of single keys.
    pub lock_hold_ns: Quantiles,
    /// Bytes held by stores and objects.
    pub used_memory: u64,
    /// Events that wait to be drained.
    pub events_pending: u64,
    /// Events that were dropped because too many waited to be drained.
    pub events_dropped: u64,
    /// True while EXPIRY FREEZE stops engine time.
    pub frozen: bool,
    /// One for each database.
    pub databases: Vec<DatabaseStats>,
}

impl Keyspace {
    /// A reading of all counters. Locks shard after shard, shortly.
    #[must_use]
    pub fn stats(&self, time: Time) -> Stats {
        let now = Now::of(&self.timeline, time);
        self.flush_bytes();
        let mut databases = vec![DatabaseReading::default(); self.databases()];
        let (events_pending, events_dropped) = self.shared.events.counts();
        let mut stats = Stats {
            events_pending,
            events_dropped,
            lateness_us: self.lateness_us.quantiles(),
            lateness_us_by_power: self.lateness_us.by_power(),
            lock_hold_ns: self.lock_hold_ns.quantiles(),
            next_deadline: NEVER,
            used_memory: self.used_memory(),
            frozen: self.timeline.is_frozen(),
            ..Stats::default()
        };
        let mut readings = self.readings.lock();
        readings.resize_with(self.shards(), ShardReading::default);
        for (i, (shard, reading)) in self.shards.iter().zip(readings.iter_mut()).enumerate() {
            // What a long command has counts as it was.
            if let Some(mut hold) = shard.lock_briefly() {
                *reading = ShardReading::of(&mut hold, &now);
            }
            stats.add(&reading.counters);
            stats.changes += reading.changes;
            stats.overdue += reading.overdue;
            for (sum, part) in databases.iter_mut().zip(&reading.databases) {
                sum.add(part);
            }
            // A bound that has been reached is work that is late.
            let published = shard.next_deadline();
            if now.reached(published) {
                stats.backlog_shards += 1;
                stats.backlog_ms = stats.backlog_ms.max(now.tick - published);
            }
            stats.next_deadline = stats.next_deadline.min(self.next_deadline(i));
        }
        drop(readings);
        stats.databases = databases.iter().map(DatabaseReading::finish).collect();
        stats
    }

    /// Panics unless the memory that is counted is the memory that is held. For tests: it visits
    /// every entry.
    #[doc(hidden)]
    pub fn assert_counted(&self) {
        self.shards
            .iter()
            .for_each(|shard| shard.lock().assert_counted());
    }

    /// Sets counters and histograms to zero (CONFIG RESETSTAT).
    pub fn reset_stats(&self) {
        for shard in 0..self.shards() {
            let reset: ShardAction = Box::new(|hold| hold.counters = Counters::default());
            drop(self.act_on(shard, reset));
        }
        self.shared.events.reset_dropped();
        self.shared.expired.reset_stats();
        self.lateness_us.reset();
        self.lock_hold_ns.reset();
    }

    /// True while EXPIRY FREEZE stops engine time.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.timeline.is_frozen()
    }
}

impl Stats {
    fn add(&mut self, counters: &Counters) {
        self.hits += counters.hits;
        self.misses += counters.misses;
        self.expired += counters.expired;
        self.expired_members += counters.expired_members;
        self.evicted += counters.evicted;
        self.budget_hits += counters.budget_hits;
    }
}
