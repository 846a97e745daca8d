//! The counters' values that the `metrics` facade was given last.

use tidewheel_time::Counts;

use crate::core::totals::Totals;
use crate::stats::{Count, Counters, LATENESS_WINDOWS};
use crate::sync::{Mutex, lock};

/// A counter, what it counts, and what exporters say of it.
pub(crate) struct Told {
    pub(crate) name: &'static str,
    count: Count,
    pub(crate) help: &'static str,
}

const fn told(name: &'static str, count: Count, help: &'static str) -> Told {
    Told { name, count, help }
}

/// The counters.
pub(crate) const COUNTERS: [Told; 21] = [
    told(
        "tidewheel_hits_total",
        Count::Hit,
        "Lookups that found a live entry.",
    ),
    told(
        "tidewheel_misses_total",
        Count::Miss,
        "Lookups that did not find a live entry.",
    ),
    told(
        "tidewheel_stale_hits_total",
        Count::Stale,
        "Answers with a value past its soft deadline, or in place of an error.",
    ),
    told(
        "tidewheel_stale_on_error_total",
        Count::StaleOnError,
        "Old values served in place of a loader's error.",
    ),
    told(
        "tidewheel_joined_total",
        Count::Joined,
        "Misses answered by what another caller was loading.",
    ),
    told(
        "tidewheel_negative_hits_total",
        Count::NegativeHit,
        "Errors and absences answered from memory.",
    ),
    told(
        "tidewheel_negatives_evicted_total",
        Count::NegativeEvicted,
        "Errors and absences forgotten to make room for others.",
    ),
    told(
        "tidewheel_inserts_total",
        Count::Insert,
        "Entries stored, new and replaced.",
    ),
    told(
        "tidewheel_loads_total",
        Count::Load,
        "Loaders that were run, each key of a bulk load.",
    ),
    told(
        "tidewheel_load_errors_total",
        Count::LoadError,
        "Loaders that failed or panicked.",
    ),
    told(
        "tidewheel_evictions_total",
        Count::Eviction,
        "Entries removed to make room.",
    ),
    told(
        "tidewheel_expirations_total",
        Count::Expiration,
        "Entries removed at their deadline.",
    ),
    told(
        "tidewheel_removals_total",
        Count::Removal,
        "Entries removed by the application.",
    ),
    told(
        "tidewheel_rejected_total",
        Count::Rejected,
        "Entries heavier than the whole capacity, not stored.",
    ),
    told(
        "tidewheel_refreshes_total",
        Count::RefreshBegun,
        "Background refreshes begun.",
    ),
    told(
        "tidewheel_refreshes_done_total",
        Count::RefreshDone,
        "Background refreshes that brought a value, or word that there is none.",
    ),
    told(
        "tidewheel_refreshes_failed_total",
        Count::RefreshFailed,
        "Background refreshes that failed, panicked or were dropped.",
    ),
    told(
        "tidewheel_refreshes_skipped_total",
        Count::RefreshSkipped,
        "Refreshes not started because the queue was full.",
    ),
    told(
        "tidewheel_events_dropped_total",
        Count::EventDropped,
        "Events the listener did not get because its queue was full.",
    ),
    told(
        "tidewheel_listener_panics_total",
        Count::ListenerPanic,
        "Panics of the listener.",
    ),
    told(
        "tidewheel_drop_panics_total",
        Count::DropPanic,
        "Panics in drops of keys and values.",
    ),
];

/// What was added to the counters, to the windows of lateness, and to the durations of loads.
pub(crate) type Added = ([u64; COUNTERS.len()], [u64; LATENESS_WINDOWS], Counts);

/// The values that were published so far.
#[derive(Default)]
pub(crate) struct Published(Mutex<PublishedState>);

/// Sums as of the last time.
#[derive(Default)]
struct PublishedState {
    counts: [u64; COUNTERS.len()],
    lateness: [u64; LATENESS_WINDOWS],
    load_us: Counts,
    /// The tick at which the driver publishes next.
    #[cfg(feature = "system")]
    next: u64,
}

impl Published {
    /// Returns what was counted since the last call.
    pub(crate) fn take(&self, totals: &Totals, counters: &Counters) -> Added {
        let mut state = lock(&self.0);
        let mut counts = [0; COUNTERS.len()];
        for ((told, added), old) in COUNTERS.iter().zip(&mut counts).zip(&mut state.counts) {
            let sum = totals.of(told.count);
            *added = sum.saturating_sub(*old);
            *old = sum.max(*old);
        }
        let mut lateness = [0; LATENESS_WINDOWS];
        let windows = totals.lateness.iter().zip(&mut lateness);
        for ((sum, added), old) in windows.zip(&mut state.lateness) {
            *added = sum.saturating_sub(*old);
            *old = (*sum).max(*old);
        }
        let load_us = counters.load_us.read();
        let loads = load_us.since(&state.load_us);
        state.load_us = load_us;
        (counts, lateness, loads)
    }

    /// Returns whether a publication is due at this tick; the next one is `every` ticks later.
    #[cfg(feature = "system")]
    pub(crate) fn is_due(&self, now: u64, every: u64) -> bool {
        let mut state = lock(&self.0);
        let due = now >= state.next;
        if due {
            state.next = now.saturating_add(every);
        }
        due
    }

    /// Stops publication by the driver.
    #[cfg(feature = "system")]
    pub(crate) fn end(&self) {
        lock(&self.0).next = u64::MAX;
    }
}
