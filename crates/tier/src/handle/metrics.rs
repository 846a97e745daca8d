//! Publishes the counters of both tiers to the `metrics` facade on request.

use std::hash::Hash;
use std::mem;
use std::sync::PoisonError;

use metrics::{counter, describe_counter, describe_gauge, gauge};

use super::cache::TieredCache;
use crate::codec::TierKey;
use crate::stats::METRICS;

/// # Metrics
impl<K, V> TieredCache<K, V>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Hands the [counts of the tier](Self::tier_stats) to the recorder of the `metrics` facade,
    /// what was added since the last time, and those of the [first
    /// tier](tidewheel::Cache::publish_metrics). No thread does the former by itself: call this
    /// when the metrics are about to be read.
    ///
    /// Each of the tier's is labelled with `tier`, the [namespace](crate::Tier::new). The
    /// [README](https://github.com/tidewheel/tidewheel/blob/main/crates/tier/README.md#metrics)
    /// lists them.
    pub fn publish_metrics(&self) {
        self.first_tier().publish_metrics();
        let tier = self.inner.stream.names().namespace();
        let (stats, before) = {
            // Read under the lock, so that readings follow each other. The recorder is the user's
            // code, and is told after.
            let last = self.inner.published.lock();
            let mut last = last.unwrap_or_else(PoisonError::into_inner);
            let stats = self.tier_stats();
            (stats, mem::replace(&mut *last, stats))
        };
        for (metric, read, help) in METRICS {
            // Each time: nobody knows when a recorder is installed.
            describe_counter!(*metric, help.trim_start());
            let added = read(&stats).saturating_sub(read(&before));
            counter!(*metric, "tier" => tier.clone()).increment(added);
        }
        let gauges = [
            (
                "tidewheel_tier_watched",
                usize::from(self.is_watched()),
                "1 while connections tell of all changes, so that entries are believed.",
            ),
            (
                "tidewheel_tier_engine_left_alone",
                usize::from(self.is_engine_left_alone()),
                "1 while the engine is left alone, after failures.",
            ),
            (
                "tidewheel_tier_invalidations_waiting",
                self.invalidations_waiting(),
                "Invalidations that the engine has not taken yet.",
            ),
        ];
        for (metric, value, help) in gauges {
            describe_gauge!(metric, help);
            gauge!(metric, "tier" => tier.clone()).set(value as f64);
        }
    }
}
