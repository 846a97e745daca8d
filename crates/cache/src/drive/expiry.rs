//! One pass of a driver: it removes due entries in short holds, shard after shard, and then lets
//! the wheels work ahead.

use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use tidewheel_time::Moment;
use tidewheel_timer::SPLIT_PER_TICK;

use crate::core::cell::ShardCell;
use crate::core::inner::Inner;
use crate::shard::effects::RECORDS_PER_HOLD;
use crate::sync::Ordering::Relaxed;

/// The result of one call of [`Cache::advance`](crate::Cache::advance).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Entries removed because their time was over.
    pub expired: u64,
    /// Timer records moved or dropped, and entries moved together.
    pub moved: u64,
    /// True if the budget ran out first: call again.
    pub backlog: bool,
    /// The time until the next call is worth while; `None` when nothing has a deadline.
    pub next: Option<Duration>,
}

/// Timer records that one hold moves ahead of their time: a move takes a tenth of a removal.
const AHEAD_PER_HOLD: u32 = 64;

/// Units of tidying in one hold of a shard's lock.
const TIDY_PER_HOLD: u32 = 16;

/// The state of a driver between two passes.
#[derive(Default)]
pub(crate) struct Rounds {
    /// The shard that the next pass begins with.
    first: usize,
    /// The tick at which to tidy if no more entries are removed, and the tick at which to tidy
    /// anyhow.
    pub(crate) tidy_at: Option<(u64, u64)>,
    /// The end of the turn, if other caches wait for it.
    pub(crate) ends_at: Option<Moment>,
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Removes what is due at engine tick `now`; then works ahead with what is left of the budget.
    pub(crate) fn pass(&self, rounds: &mut Rounds, now: u64, budget: &mut u32) -> Progress {
        let mut progress = Progress::default();
        // One hold of each shard in turn, so that each shard is free between two holds.
        loop {
            let mut backlog = false;
            let (last, first) = self.shards.split_at(rounds.first);
            for (at, cell) in (rounds.first..).zip(first).chain((0..).zip(last)) {
                if cell.next_deadline.get() > now {
                    continue;
                }
                let hold = self.expire_hold(cell, now, RECORDS_PER_HOLD, budget);
                if self.is_over(rounds) {
                    *budget = 0;
                }
                progress.expired += u64::from(hold.fired);
                progress.moved += u64::from(hold.moved);
                backlog |= hold.backlog;
                if hold.backlog && hold.fired + hold.moved == 0 {
                    // Begin here next time: no shard starves.
                    rounds.first = at;
                    progress.backlog = true;
                    return progress;
                }
            }
            if !backlog {
                progress.moved += self.work_ahead(now, budget);
                return progress;
            }
        }
    }

    /// Removes due entries of one shard in one short hold of its lock that touches at most
    /// `records` timer records; what is left of them, the wheel uses to work ahead.
    fn expire_hold(
        &self,
        cell: &ShardCell<K, V>,
        now: u64,
        records: u32,
        budget: &mut u32,
    ) -> tidewheel_store::Progress {
        if *budget == 0 || self.rules.events.must_wait() {
            return tidewheel_store::Progress {
                backlog: true,
                ..Default::default()
            };
        }
        let hold = records.min(*budget);
        let progress = self.hold(cell, |shard| {
            let progress = shard.expire(&self.rules, now, hold);
            shard.give_back(&self.rules);
            progress
        });
        *budget -= (progress.fired + progress.moved).clamp(1, *budget);
        progress
    }

    /// Lets the wheels of crowded shards split coming slots before their start, when nothing is
    /// due. Returns the records moved.
    fn work_ahead(&self, now: u64, budget: &mut u32) -> u64 {
        let mut moved = 0;
        for _ in 0..SPLIT_PER_TICK / AHEAD_PER_HOLD {
            let mut crowded = false;
            for cell in &self.shards {
                // A wheel with work ahead asks to be called at every tick.
                if cell.next_deadline.get() > now + 1 || *budget == 0 {
                    continue;
                }
                let hold = self.expire_hold(cell, now, AHEAD_PER_HOLD, budget);
                moved += u64::from(hold.moved);
                crowded |= hold.moved >= AHEAD_PER_HOLD / 2;
            }
            if !crowded {
                break;
            }
        }
        moved
    }

    /// Tidies the shards that want it; `true` when some still do.
    pub(crate) fn tidy(&self, budget: &mut u32) -> bool {
        let mut more = false;
        for cell in &self.shards {
            if cell.untidy.load(Relaxed) {
                more |= *budget == 0 || self.tidy_shard(cell, budget);
            }
        }
        more
    }

    /// Tidies one shard, in short holds of its lock; returns whether more is worth doing.
    fn tidy_shard(&self, cell: &ShardCell<K, V>, budget: &mut u32) -> bool {
        cell.untidy.store(false, Relaxed);
        while *budget > 0 {
            let hold = TIDY_PER_HOLD.min(*budget);
            *budget -= hold;
            let more = self.hold(cell, |shard| {
                shard.removals = 0;
                let place_of = |key: &K| self.rules.place_of(key);
                shard.store.maintain(hold, &place_of)
            });
            if !more {
                return false;
            }
        }
        cell.untidy.store(true, Relaxed);
        true
    }
}
