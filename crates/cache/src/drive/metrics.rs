//! Publishes a cache's counters and gauges to the `metrics` facade.
//!
//! Counters are published as what was added since the last time, so it does not matter how often
//! they are.

use std::hash::{BuildHasher, Hash};

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use crate::core::inner::Inner;
use crate::core::published::{COUNTERS, Told};

/// Ticks between two publications by the driver's thread, while it is awake.
#[cfg(feature = "system")]
const PUBLISH_EVERY: u64 = 1000;

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    pub(crate) fn publish_metrics(&self) {
        // The recorder is user code: counts are taken under the mutex and told after.
        let totals = self.totals();
        let (counts, lateness, loads) = self.published.take(&totals, &self.counters);
        let name = &self.rules.config.name;
        for (
            Told {
                name: metric, help, ..
            },
            added,
        ) in COUNTERS.iter().zip(counts)
        {
            describe_counter!(*metric, *help);
            // Registered though nothing was added, so that it is there to be read.
            counter!(*metric, "cache" => name.clone()).increment(added);
        }
        describe_the_rest();
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
        gauge!("tidewheel_entries", "cache" => name.clone()).set(totals.entries as f64);
        gauge!("tidewheel_weight", "cache" => name.clone()).set(totals.weight as f64);
        gauge!("tidewheel_negatives", "cache" => name.clone()).set(totals.negatives as f64);
        let refreshes = [
            ("tidewheel_refreshes_queued", self.refreshes.waiting()),
            ("tidewheel_refreshes_running", self.refreshes.running()),
        ];
        for (metric, count) in refreshes {
            gauge!(metric, "cache" => name.clone()).set(count as f64);
        }
        let backlog = self.overdue().as_secs_f64();
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

/// Each time: nobody knows when a recorder is installed, and this is done once a second at most.
fn describe_the_rest() {
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
        "tidewheel_entries",
        "Entries, those that are due but not removed included."
    );
    describe_gauge!("tidewheel_weight", "The entries' weight.");
    describe_gauge!(
        "tidewheel_negatives",
        "Errors and absences that are remembered."
    );
    describe_gauge!("tidewheel_refreshes_queued", "Refreshes that wait.");
    describe_gauge!("tidewheel_refreshes_running", "Refreshes that run.");
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
