//! Publishes the counters to the `metrics` facade on request.

use std::hash::{BuildHasher, Hash};

use super::cache::Cache;

/// # Metrics
impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Hands what has happened since the last time to the recorder of the `metrics` facade. The
    /// driver's thread does it about once a second while it is awake; it is not woken for it, so
    /// call this when the metrics are about to be read, and with the other drivers.
    ///
    /// Each is labelled with `cache`, the [cache's name](crate::Builder::name), and described. They
    /// are the fields of [`Stats`](crate::Stats), which says what each counts:
    ///
    /// - Counters: `tidewheel_hits_total`, `tidewheel_misses_total`, `tidewheel_stale_hits_total`,
    ///   `tidewheel_stale_on_error_total`, `tidewheel_joined_total`,
    ///   `tidewheel_negative_hits_total`, `tidewheel_negatives_evicted_total`,
    ///   `tidewheel_inserts_total`, `tidewheel_loads_total`, `tidewheel_load_errors_total`,
    ///   `tidewheel_evictions_total`, `tidewheel_expirations_total`, `tidewheel_removals_total`,
    ///   `tidewheel_rejected_total`, `tidewheel_refreshes_total` (those begun),
    ///   `tidewheel_refreshes_done_total`, `tidewheel_refreshes_failed_total`,
    ///   `tidewheel_refreshes_skipped_total`, `tidewheel_events_dropped_total`,
    ///   `tidewheel_listener_panics_total`, `tidewheel_drop_panics_total`.
    /// - Gauges: `tidewheel_entries`, `tidewheel_weight`, `tidewheel_negatives`,
    ///   `tidewheel_refreshes_queued`, `tidewheel_refreshes_running`, and
    ///   `tidewheel_backlog_seconds`: how long the earliest deadline that is over has been waiting.
    /// - A histogram: `tidewheel_expiry_lateness_seconds`, each removal as the end of its window of
    ///   [`Stats::lateness`](crate::Stats::lateness).
    pub fn publish_metrics(&self) {
        self.inner.publish_metrics();
    }
}
