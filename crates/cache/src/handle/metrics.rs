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
    /// are the fields of [`Stats`](crate::Stats), which says what each counts, and how long loaders
    /// took. The
    /// [README](https://github.com/tidewheel/tidewheel/blob/main/crates/cache/README.md#metrics)
    /// lists them. A removal stands in the histogram as the end of its window of
    /// [`Stats::lateness`](crate::Stats::lateness).
    pub fn publish_metrics(&self) {
        self.inner.publish_metrics();
    }
}
