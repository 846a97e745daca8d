//! Counters that many threads write without waiting for each other.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tidewheel_time::Histogram;

/// Threads that count in a cell of their own; the others share the last one.
const STRIPES: usize = 64;

/// One thread's counts, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe {
    counts: [AtomicU64; Count::KINDS],
}

/// What is counted.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(crate) enum Count {
    Hit,
    Miss,
    Stale,
    Insert,
    Load,
    LoadError,
    Eviction,
    Expiration,
    Removal,
    Rejected,
    RefreshSkipped,
    EventDropped,
    ListenerPanic,
    DropPanic,
}

impl Count {
    const KINDS: usize = 14;
}

/// The counters of one cache.
#[derive(Debug)]
pub(crate) struct Counters {
    stripes: Box<[Stripe]>,
    /// In ticks.
    lateness: Histogram,
}

/// The stripes that living threads of this process have, and those that ended ones gave back.
static STRIPES_IN_USE: Mutex<StripesInUse> = Mutex::new(StripesInUse {
    given: 0,
    returned: Vec::new(),
});

struct StripesInUse {
    given: usize,
    returned: Vec<usize>,
}

/// A thread's own stripe, given back when the thread ends.
struct OwnStripe(usize);

impl OwnStripe {
    fn take() -> Self {
        let mut stripes = lock(&STRIPES_IN_USE);
        if let Some(stripe) = stripes.returned.pop() {
            return Self(stripe);
        }
        let stripe = stripes.given.min(STRIPES - 1);
        stripes.given = stripes.given.saturating_add(1);
        Self(stripe)
    }
}

impl Drop for OwnStripe {
    fn drop(&mut self) {
        if self.0 < STRIPES - 1 {
            lock(&STRIPES_IN_USE).returned.push(self.0);
        }
    }
}

fn lock(stripes: &Mutex<StripesInUse>) -> MutexGuard<'_, StripesInUse> {
    stripes
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

thread_local! {
    static STRIPE: OwnStripe = OwnStripe::take();
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            stripes: (0..STRIPES).map(|_| Stripe::default()).collect(),
            lateness: Histogram::default(),
        }
    }

    #[inline]
    pub(crate) fn add(&self, count: Count, by: u64) {
        // A thread that is ending, its own stripe given back, shares the last one.
        let stripe = STRIPE.try_with(|own| own.0).unwrap_or(STRIPES - 1);
        let cell = &self.stripes[stripe].counts[count as usize];
        if stripe < STRIPES - 1 {
            // Nobody else writes here: no locked instruction.
            cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
        } else {
            cell.fetch_add(by, Relaxed);
        }
    }

    pub(crate) fn sum(&self, count: Count) -> u64 {
        self.stripes
            .iter()
            .map(|stripe| stripe.counts[count as usize].load(Relaxed))
            .fold(0, u64::wrapping_add)
    }

    /// By how many ticks removed entries were past their deadline.
    pub(crate) fn lateness(&self) -> &Histogram {
        &self.lateness
    }
}

/// Windows of [`Stats::lateness`].
pub(crate) const LATENESS_WINDOWS: usize = 24;

/// What has happened in a cache since it was built.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Lookups that found a live entry.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Hits that were past their soft deadline, or served because a loader failed.
    pub stale_hits: u64,
    /// Entries stored: new and replaced ones.
    pub inserts: u64,
    /// Loaders that were run.
    pub loads: u64,
    /// Loaders that failed or panicked.
    pub load_errors: u64,
    /// Entries removed to make room. Those that were rejected had not come in.
    pub evictions: u64,
    /// Entries removed because their time was over.
    pub expirations: u64,
    /// Entries removed by the caller: one by one, by predicate or tag, all, or by
    /// [`close`](crate::Cache::close).
    pub removals: u64,
    /// Entries heavier than the whole capacity, which were not stored: the listener gets them. Not those
    /// that a caller is told of instead, as by [`compare_and_set`](crate::Cache::compare_and_set).
    pub rejected: u64,
    /// Background refreshes that were not started because the queue was full.
    pub refreshes_skipped: u64,
    /// Events that the listener did not get, since its queue was full and `OnFull::Drop` was chosen.
    pub events_dropped: u64,
    /// Panics of the listener. It goes on to be called.
    pub listener_panics: u64,
    /// Panics of keys' and values' `Drop` that the cache has met as it dropped them. Nothing is lost by them.
    pub drop_panics: u64,
    /// Entries present now, dead ones that are not yet removed included.
    pub entries: u64,
    /// Their weight.
    pub weight: u64,
    /// Entries removed by their deadline, by how late: `[0]` within the tick, `[i]` later by
    /// `2^(i-1) ..< 2^i` ms.
    pub lateness: [u64; LATENESS_WINDOWS],
    /// How long the earliest deadline that is over has been waiting for the driver; zero when none is.
    pub backlog: Duration,
}

impl Stats {
    /// Hits in all lookups, 0 when there were none.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        let lookups = self.hits + self.misses;
        if lookups == 0 {
            0.0
        } else {
            self.hits as f64 / lookups as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of the first 63 threads got a cell of its own. All later threads counted in one shared cell, although the
    /// first had ended.
    #[test]
    fn stripes_of_threads_that_ended_are_used_again() {
        let counters = std::sync::Arc::new(Counters::new());
        for _ in 0..3 * STRIPES {
            let counters = std::sync::Arc::clone(&counters);
            std::thread::spawn(move || counters.add(Count::Hit, 1))
                .join()
                .expect("counts");
        }
        assert_eq!(counters.sum(Count::Hit), 3 * STRIPES as u64);
        let shared = counters.stripes[STRIPES - 1].counts[Count::Hit as usize].load(Relaxed);
        assert_eq!(shared, 0, "there were free stripes");
    }
}
