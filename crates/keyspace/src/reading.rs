//! Readings of one shard's counters.

use crate::shard::{Counters, Hold};
use crate::time::Now;
use crate::value::own_deadline;

/// A reading of one database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatabaseStats {
    /// Keys, dead ones that are not yet removed included.
    pub keys: u64,
    /// Keys that have a deadline.
    pub expires: u64,
    /// Keys with members that have deadlines.
    pub with_timed_members: u64,
    /// Mean milliseconds left of keys with a deadline, by a sample; 0 without any.
    pub avg_ttl_ms: u64,
}

/// Entries with a deadline that a reading samples in each shard and database for the mean time
/// left.
const TTL_SAMPLES: usize = 4;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DatabaseReading {
    stats: DatabaseStats,
    ttl_sum_ms: u64,
    ttl_samples: u64,
}

/// A reading of one shard's counters.
#[derive(Debug, Default)]
pub(crate) struct ShardReading {
    pub(crate) counters: Counters,
    pub(crate) changes: u64,
    /// Keys whose deadline is reached.
    pub(crate) overdue: u64,
    pub(crate) databases: Vec<DatabaseReading>,
}

impl ShardReading {
    pub(crate) fn of(hold: &mut Hold<'_>, now: &Now) -> Self {
        let databases = 0..hold.databases();
        Self {
            counters: hold.counters,
            changes: hold.changes,
            overdue: overdue(hold, now),
            databases: databases
                .map(|db| DatabaseReading::of(hold, db, now))
                .collect(),
        }
    }
}

/// Keys whose deadline is reached. Nothing is looked at if there can be none.
fn overdue(hold: &mut Hold<'_>, now: &Now) -> u64 {
    if !now.reached(hold.published()) {
        return 0;
    }
    let edges = [0];
    let mut windows = [0; 2];
    for db in 0..hold.databases() {
        let entries = hold.entries(db);
        entries.spans(now.tick, &edges, |span| {
            if span.first == 0 {
                span.spread(&edges, &mut windows);
            }
        });
    }
    windows[0]
}

impl DatabaseReading {
    fn of(hold: &mut Hold<'_>, db: u32, now: &Now) -> Self {
        let mut reading = Self::default();
        reading.read(hold, db, now);
        reading
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.stats.keys += other.stats.keys;
        self.stats.expires += other.stats.expires;
        self.stats.with_timed_members += other.stats.with_timed_members;
        self.ttl_sum_ms = self.ttl_sum_ms.saturating_add(other.ttl_sum_ms);
        self.ttl_samples += other.ttl_samples;
    }

    fn read(&mut self, hold: &mut Hold<'_>, db: u32, now: &Now) {
        let entries = hold.entries(db);
        self.stats.keys += entries.len() as u64;
        self.stats.expires += hold.with_deadline(db) as u64;
        self.stats.with_timed_members += hold.with_timed_members(db) as u64;
        if hold.with_deadline(db) == 0 {
            return;
        }
        for _ in 0..TTL_SAMPLES {
            let random = hold.random.next();
            let entries = hold.entries(db);
            let slot = entries.sample(random);
            if let Some(deadline) = slot.and_then(|slot| own_deadline(entries, slot)) {
                self.ttl_sum_ms = self
                    .ttl_sum_ms
                    .saturating_add(deadline.saturating_sub(now.tick));
                self.ttl_samples += 1;
            }
        }
    }

    pub(crate) fn finish(&self) -> DatabaseStats {
        let avg_ttl_ms = self.ttl_sum_ms.checked_div(self.ttl_samples).unwrap_or(0);
        DatabaseStats {
            avg_ttl_ms,
            ..self.stats
        }
    }
}
