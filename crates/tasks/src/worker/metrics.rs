//! Publishes a worker's statistics to the `metrics` facade on request.

use std::sync::{Mutex, PoisonError};
use std::{iter, mem};

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use tidewheel_time::Counts;

use super::Worker;
use super::manual::ManualWorker;
use super::shared::Shared;
use super::stats::Stats;
use crate::store::TaskStore;

/// A metric: its name, its value, and what exporters say of it.
type Told<T> = (&'static str, fn(&Stats) -> T, &'static str);

#[rustfmt::skip] // A line for each.
const COUNTERS: [Told<u64>; 13] = [
    ("tidewheel_tasks_claimed_total", |s| s.claimed, "Claims that were taken."),
    ("tidewheel_tasks_ran_total", |s| s.ran, "Handlers that were called."),
    ("tidewheel_tasks_done_total", |s| s.done, "Runs whose success the engine knows."),
    ("tidewheel_tasks_retried_total", |s| s.retried, "Runs that failed and are tried again."),
    ("tidewheel_tasks_dead_total", |s| s.dead, "Runs that failed for the last time."),
    ("tidewheel_tasks_panicked_total", |s| s.panicked, "Failures that were panics, or async runs that were dropped."),
    ("tidewheel_tasks_refused_total", |s| s.refused, "Ends of runs that the engine refused: another worker has the task."),
    ("tidewheel_tasks_lapsed_total", |s| s.lapsed, "Claims not run because their lease had ended."),
    ("tidewheel_tasks_recalled_total", |s| s.recalled, "Claims not run because the engine had taken them back."),
    ("tidewheel_tasks_released_total", |s| s.released, "Claims that were given back."),
    ("tidewheel_tasks_extended_total", |s| s.extended, "Leases that were extended, each time."),
    ("tidewheel_tasks_errors_total", |s| s.errors, "Calls of the engine that failed."),
    ("tidewheel_tasks_skews_total", |s| s.skews, "Times at which the clocks came to be a second apart."),
];

#[rustfmt::skip] // A line for each.
const GAUGES: [Told<f64>; 4] = [
    ("tidewheel_tasks_held", |s| s.held as f64, "Claims that wait for their time, or run, or whose end the engine does not know yet."),
    ("tidewheel_tasks_running", |s| s.running as f64, "Claims that run."),
    ("tidewheel_tasks_offset_seconds", |s| s.offset_us as f64 / 1e6, "The engine's time less this machine's."),
    ("tidewheel_tasks_skewed", |s| f64::from(u8::from(s.skewed)), "1 while that is more than a second: nothing is claimed ahead."),
];

const LATENESS: &str = "tidewheel_tasks_lateness_seconds";

/// The counters and the lateness that were published last.
#[derive(Debug, Default)]
pub(super) struct Published(Mutex<(Vec<u64>, Counts)>);

/// # Metrics
impl<S: TaskStore> Worker<S> {
    /// Hands the [statistics](Self::stats) to the recorder of the `metrics` facade, and of counters
    /// what was added since the last time. No thread does it by itself: call this when the metrics
    /// are about to be read.
    ///
    /// Each field of [`Stats`] is a metric, which is labelled with `worker`, the [worker's
    /// name](crate::WorkerBuilder::name). The
    /// [README](https://github.com/tidewheel/tidewheel/blob/main/crates/tasks/README.md#metrics)
    /// lists them.
    pub fn publish_metrics(&self) {
        self.shared.publish_metrics();
    }
}

/// # Metrics
impl<S: TaskStore> ManualWorker<S> {
    /// As [`Worker::publish_metrics`].
    pub fn publish_metrics(&self) {
        self.shared.publish_metrics();
    }
}

impl<S: TaskStore> Shared<S> {
    fn publish_metrics(&self) {
        let name = &self.settings.name;
        let (stats, late_us, before) = {
            // Read under the lock, so that readings follow each other. The recorder is the user's
            // code, and is told after.
            let last = self.published.0.lock();
            let mut last = last.unwrap_or_else(PoisonError::into_inner);
            let (stats, late_us) = (self.stats(), self.counters.late_us.read());
            let counts = COUNTERS.map(|(_, read, _)| read(&stats)).to_vec();
            let before = mem::replace(&mut *last, (counts, late_us.clone()));
            (stats, late_us, before)
        };
        let old = before.0.into_iter().chain(iter::repeat(0));
        for ((metric, read, help), old) in COUNTERS.into_iter().zip(old) {
            // Each time: nobody knows when a recorder is installed.
            describe_counter!(metric, help);
            let added = read(&stats).saturating_sub(old);
            counter!(metric, "worker" => name.clone()).increment(added);
        }
        for (metric, read, help) in GAUGES {
            describe_gauge!(metric, help);
            gauge!(metric, "worker" => name.clone()).set(read(&stats));
        }
        describe_histogram!(
            LATENESS,
            Unit::Seconds,
            "From a task's due time to the call of its handler, by the engine's clock."
        );
        let late = histogram!(LATENESS, "worker" => name.clone());
        for (us, added) in late_us.since(&before.1).buckets() {
            let times = usize::try_from(added).unwrap_or(usize::MAX);
            late.record_many(us as f64 / 1e6, times);
        }
    }
}
