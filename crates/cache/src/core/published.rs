//! What of the counters was told to the `metrics` facade so far.

use crate::stats::{Count, Counters, LATENESS_WINDOWS};
use crate::sync::{Mutex, lock};

/// The counters and what each counts.
pub(crate) const COUNTERS: [(&str, Count); 10] = [
    ("tidewheel_hits_total", Count::Hit),
    ("tidewheel_misses_total", Count::Miss),
    ("tidewheel_stale_hits_total", Count::Stale),
    ("tidewheel_loads_total", Count::Load),
    ("tidewheel_load_errors_total", Count::LoadError),
    ("tidewheel_evictions_total", Count::Eviction),
    ("tidewheel_expirations_total", Count::Expiration),
    ("tidewheel_removals_total", Count::Removal),
    ("tidewheel_refreshes_skipped_total", Count::RefreshSkipped),
    ("tidewheel_events_dropped_total", Count::EventDropped),
];

/// What was published so far.
#[derive(Debug, Default)]
pub(crate) struct Published(Mutex<State>);

/// Sums as of the last time.
#[derive(Debug, Default)]
struct State {
    counts: [u64; COUNTERS.len()],
    lateness: [u64; LATENESS_WINDOWS],
    /// When the driver publishes next, in ticks.
    #[cfg(feature = "system")]
    next: u64,
}

impl Published {
    /// What was counted since the last call.
    pub(crate) fn take(
        &self,
        counters: &Counters,
    ) -> ([u64; COUNTERS.len()], [u64; LATENESS_WINDOWS]) {
        let mut state = lock(&self.0);
        let mut counts = [0; COUNTERS.len()];
        for (((_, count), added), old) in COUNTERS.iter().zip(&mut counts).zip(&mut state.counts) {
            let sum = counters.sum(*count);
            *added = sum.saturating_sub(*old);
            *old = sum.max(*old);
        }
        let windows = counters.lateness().by_power::<LATENESS_WINDOWS>();
        let mut lateness = [0; LATENESS_WINDOWS];
        for ((sum, added), old) in windows
            .into_iter()
            .zip(&mut lateness)
            .zip(&mut state.lateness)
        {
            *added = sum.saturating_sub(*old);
            *old = sum.max(*old);
        }
        (counts, lateness)
    }

    /// Whether a publication is due at this tick; the next one is `every` ticks later.
    #[cfg(feature = "system")]
    pub(crate) fn is_due(&self, now: u64, every: u64) -> bool {
        let mut state = lock(&self.0);
        let due = now >= state.next;
        if due {
            state.next = now.saturating_add(every);
        }
        due
    }

    /// Nothing is due any more.
    #[cfg(feature = "system")]
    pub(crate) fn end(&self) {
        lock(&self.0).next = u64::MAX;
    }
}
