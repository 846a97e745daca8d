//! Publishes a cache's counters and gauges to the `metrics` facade.
//!
//! Counters are published as what was added since the last time, so it does not matter how often
//! they are.

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use tidewheel_time::Counts;

use crate::core::inner::Inner;
use crate::stats::{Count, Counters, LATENESS_WINDOWS, METRICS, Stats};
use crate::sync::{Mutex, lock};

/// Ticks between two publications by the driver's thread, while it is awake.
#[cfg(feature = "system")]
const PUBLISH_EVERY: u64 = 1000;

impl<K, V, S> Inner<K, V, S> {
    pub(crate) fn publish_metrics(&self) {
        // The recorder is user code: counts are taken under the mutex and told after.
        let stats = self.stats();
        let (counts, lateness, loads) = self.published.take(&stats, &self.counters);
        let name = &self.rules.config.name;
        for ((metric, help), added) in METRICS.iter().zip(counts) {
            describe_counter!(*metric, *help);
            // Registered though nothing was added, so that it is there to be read.
            counter!(*metric, "cache" => name.clone()).increment(added);
        }
        describe_times();
        let late = histogram!("tidewheel_expiry_lateness_seconds", "cache" => name.clone());
        for (window, added) in lateness.into_iter().enumerate().filter(|(_, n)| *n > 0) {
            let times = usize::try_from(added).unwrap_or(usize::MAX);
            late.record_many(window_end(window), times);
        }
        let took = histogram!("tidewheel_load_duration_seconds", "cache" => name.clone());
        for (us, added) in loads.buckets() {
            let times = usize::try_from(added).unwrap_or(usize::MAX);
            took.record_many(us as f64 / 1e6, times);
        }
        for (metric, help, value) in stats.gauges() {
            describe_gauge!(metric, help);
            gauge!(metric, "cache" => name.clone()).set(value as f64);
        }
        let backlog = stats.backlog.as_secs_f64();
        gauge!("tidewheel_backlog_seconds", "cache" => name.clone()).set(backlog);
    }

    /// Publishes if the driver did not for a while. A recorder that panics is not asked again by
    /// it.
    #[cfg(feature = "system")]
    pub(crate) fn publish_now_and_then(&self) {
        if !self.published.is_due(self.now().tick(), PUBLISH_EVERY) {
            return;
        }
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.publish_metrics();
        }));
        if let Err(panic) = told {
            self.published.end();
            crate::quiet::forget_quietly(panic);
        }
    }
}

/// Describes what is told in seconds. Each time: nobody knows when a recorder is installed, and
/// this is done once a second at most.
fn describe_times() {
    describe_histogram!(
        "tidewheel_expiry_lateness_seconds",
        Unit::Seconds,
        "How long after its deadline an entry was removed."
    );
    describe_histogram!(
        "tidewheel_load_duration_seconds",
        Unit::Seconds,
        "How long loaders took to answer, those that failed included."
    );
    describe_gauge!(
        "tidewheel_backlog_seconds",
        Unit::Seconds,
        "How long the earliest deadline that is over has been waiting for the driver."
    );
}

/// The longest lateness of a window, in seconds.
fn window_end(window: usize) -> f64 {
    match window {
        0 => 0.0,
        _ => ((1u64 << window) - 1) as f64 / 1000.0,
    }
}

/// What was added to the counters, to the windows of lateness, and to the durations of loads.
type Added = ([u64; Count::KINDS], [u64; LATENESS_WINDOWS], Counts);

/// The values that were published so far.
#[derive(Default)]
pub(crate) struct Published(Mutex<PublishedState>);

/// Sums as of the last time.
#[derive(Default)]
struct PublishedState {
    counts: [u64; Count::KINDS],
    lateness: [u64; LATENESS_WINDOWS],
    load_us: Counts,
    /// The tick at which the driver publishes next.
    #[cfg(feature = "system")]
    next: u64,
}

impl Published {
    /// Returns what was counted since the last call.
    fn take(&self, stats: &Stats, counters: &Counters) -> Added {
        let mut state = lock(&self.0);
        let counts = added(stats.counts(), &mut state.counts);
        let lateness = added(stats.lateness, &mut state.lateness);
        let load_us = counters.load_us.read();
        let loads = load_us.since(&state.load_us);
        state.load_us = load_us;
        (counts, lateness, loads)
    }

    /// Returns whether a publication is due at this tick; the next one is `every` ticks later.
    #[cfg(feature = "system")]
    fn is_due(&self, now: u64, every: u64) -> bool {
        let mut state = lock(&self.0);
        let due = now >= state.next;
        if due {
            state.next = now.saturating_add(every);
        }
        due
    }

    /// Stops publication by the driver.
    #[cfg(feature = "system")]
    fn end(&self) {
        lock(&self.0).next = u64::MAX;
    }
}

/// What was added to sums since the last time. Sums that were read later may be less.
fn added<const N: usize>(sums: [u64; N], last: &mut [u64; N]) -> [u64; N] {
    std::array::from_fn(|at| {
        let old = last[at];
        last[at] = sums[at].max(old);
        sums[at].saturating_sub(old)
    })
}
