//! The verb that tells the `metrics` facade what has happened.

use std::hash::{BuildHasher, Hash};

use super::cache::Cache;

/// # Metrics
impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Hands what has happened since the last time to the recorder of the `metrics` facade. The driver's
    /// thread does it about once a second while it is awake; it is not woken for it, so call this when the
    /// metrics are about to be read, and with the other drivers.
    ///
    /// Labelled with `cache`, the cache's name, and described: counters `tidewheel_hits_total`, `_misses_total`,
    /// `_stale_hits_total`, `_stale_on_error_total`, `_joined_total`, `_negative_hits_total`, `_negatives_evicted_total`, `_inserts_total`, `_loads_total`, `_load_errors_total`,
    /// `_evictions_total`, `_expirations_total`, `_removals_total`, `_rejected_total`,
    /// `_refreshes_skipped_total`, `_events_dropped_total`, `_listener_panics_total`, `_drop_panics_total`; gauges
    /// `tidewheel_entries`, `_weight`, and `_backlog_seconds`: how long the earliest deadline that is over
    /// has been waiting; histogram `tidewheel_expiry_lateness_seconds`, each removal as the end of its
    /// window of [`Stats::lateness`](crate::Stats::lateness).
    pub fn publish_metrics(&self) {
        self.inner.publish_metrics();
    }
}
