//! What a cache tells the `metrics` facade.
//!
//! Counters are published as what was added since the last time, so it does not matter how often they are.

use std::hash::{BuildHasher, Hash};

use metrics::{counter, gauge, histogram};

use crate::core::inner::Inner;
use crate::handle::cache::Cache;
use crate::stats::{Count, LATENESS_WINDOWS};
use crate::sync::{Mutex, lock};

/// Ticks between two publications by the driver's thread, while it is awake.
#[cfg(feature = "system")]
const PUBLISH_EVERY: u64 = 1000;

/// The counters and what each counts.
const COUNTERS: [(&str, Count); 10] = [
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

#[derive(Debug, Default)]
struct State {
    counts: [u64; COUNTERS.len()],
    lateness: [u64; LATENESS_WINDOWS],
    /// When the driver publishes next, in ticks.
    #[cfg(feature = "system")]
    next: u64,
}

impl<K, V, S> Cache<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// Hands what has happened since the last time to the recorder of the `metrics` facade. The driver's
    /// thread does it about once a second while it is awake; it is not woken for it, so call this when the
    /// metrics are about to be read, and with the other drivers.
    ///
    /// Labelled with `cache`, the cache's name: counters `tidewheel_hits_total`, `_misses_total`,
    /// `_stale_hits_total`, `_loads_total`, `_load_errors_total`, `_evictions_total`,
    /// `_expirations_total`, `_removals_total`, `_refreshes_skipped_total`, `_events_dropped_total`; gauges
    /// `tidewheel_entries`, `_weight`, and `_backlog_seconds`: how long the earliest deadline that is over
    /// has been waiting; histogram `tidewheel_expiry_lateness_seconds`, each removal as the end of its
    /// window of [`Stats::lateness`](crate::Stats::lateness).
    pub fn publish_metrics(&self) {
        self.inner.publish_metrics();
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    pub(crate) fn publish_metrics(&self) {
        // The recorder is user code: counts are taken under the mutex and told after.
        let (counts, lateness) = self.unpublished();
        let name = &self.config.name;
        for ((metric, _), added) in COUNTERS.iter().zip(counts) {
            // Registered though nothing was added, so that it is there to be read.
            counter!(*metric, "cache" => name.clone()).increment(added);
        }
        let late = histogram!("tidewheel_expiry_lateness_seconds", "cache" => name.clone());
        for (window, added) in lateness.into_iter().enumerate().filter(|(_, n)| *n > 0) {
            let times = usize::try_from(added).unwrap_or(usize::MAX);
            late.record_many(window_end(window), times);
        }
        let (mut entries, mut weight) = (0, 0);
        for cell in &self.shards {
            let shard = self.read(cell);
            entries += shard.store.len();
            weight += shard.store.weight();
        }
        let now = self.time.now().tick();
        let waiting = self
            .next_deadline()
            .map_or(0, |next| now.saturating_sub(next));
        gauge!("tidewheel_entries", "cache" => name.clone()).set(entries as f64);
        gauge!("tidewheel_weight", "cache" => name.clone()).set(weight as f64);
        gauge!("tidewheel_backlog_seconds", "cache" => name.clone()).set(waiting as f64 / 1000.0);
    }

    /// What was counted since the last call.
    fn unpublished(&self) -> ([u64; COUNTERS.len()], [u64; LATENESS_WINDOWS]) {
        let mut state = lock(&self.published.0);
        let mut counts = [0; COUNTERS.len()];
        for (((_, count), added), old) in COUNTERS.iter().zip(&mut counts).zip(&mut state.counts) {
            let sum = self.counters.sum(*count);
            *added = sum.saturating_sub(*old);
            *old = sum.max(*old);
        }
        let windows = self.counters.lateness().by_power::<LATENESS_WINDOWS>();
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

    /// Publishes if the driver did not for a while. A recorder that panics is not asked again by it.
    #[cfg(feature = "system")]
    pub(crate) fn publish_now_and_then(&self) {
        let now = self.time.now().tick();
        {
            let mut state = lock(&self.published.0);
            if now < state.next {
                return;
            }
            state.next = now.saturating_add(PUBLISH_EVERY);
        }
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.publish_metrics();
        }));
        if let Err(panic) = told {
            lock(&self.published.0).next = u64::MAX;
            crate::quiet::forget_quietly(panic);
        }
    }
}

/// The longest lateness of a window, in seconds.
fn window_end(window: usize) -> f64 {
    match window {
        0 => 0.0,
        _ => ((1u64 << window) - 1) as f64 / 1000.0,
    }
}
