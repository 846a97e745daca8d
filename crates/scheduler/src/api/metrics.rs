//! Publishes the statistics to the `metrics` facade on request.

use std::hash::{BuildHasher, Hash};
use std::{iter, mem};

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use crate::api::handle::Handle;
use crate::api::stats::Stats;
use crate::ground::sync::lock;

/// A metric: its name, its value, and what exporters say of it.
type Told<T> = (&'static str, fn(&Stats) -> T, &'static str);

#[rustfmt::skip] // A line for each.
const COUNTERS: [Told<u64>; 10] = [
    ("tidewheel_scheduler_set_total", |s| s.set, "Calls that set a task, new or replaced."),
    ("tidewheel_scheduler_moved_total", |s| s.moved, "Calls that moved a task."),
    ("tidewheel_scheduler_removed_total", |s| s.removed, "Tasks that were removed before their time."),
    ("tidewheel_scheduler_fired_total", |s| s.fired, "Tasks whose time has come."),
    ("tidewheel_scheduler_completed_total", |s| s.completed, "Handlers that came back."),
    ("tidewheel_scheduler_panicked_total", |s| s.panicked, "Handlers that panicked."),
    ("tidewheel_scheduler_failed_total", |s| s.failed, "Async runs that panicked or were dropped."),
    ("tidewheel_scheduler_dropped_total", |s| s.dropped, "Tasks dropped because the queue was full."),
    ("tidewheel_scheduler_recalled_total", |s| s.recalled, "Periodic runs not begun, because their task was removed first."),
    ("tidewheel_scheduler_missed_total", |s| s.missed, "Periodic runs left out because they were too late."),
];

#[rustfmt::skip] // A line for each.
const GAUGES: [Told<usize>; 4] = [
    ("tidewheel_scheduler_pending", |s| s.pending, "Tasks that wait for their time."),
    ("tidewheel_scheduler_queued", |s| s.queued, "Tasks that are due and wait for a worker."),
    ("tidewheel_scheduler_running", |s| s.running, "Handlers that run."),
    ("tidewheel_scheduler_deferred", |s| s.deferred, "Runs that go on after their handler."),
];

const LATENESS: &str = "tidewheel_scheduler_lateness_seconds";

/// # Metrics
impl<K: Hash + Eq, V, S: BuildHasher> Handle<K, V, S> {
    /// Hands the [statistics](Self::stats) to the recorder of the `metrics` facade, and of counters
    /// what was added since the last time. No thread does it by itself: call this when the metrics
    /// are about to be read.
    ///
    /// Each field of [`Stats`] is a metric, which is labelled with `scheduler`, the [scheduler's
    /// name](crate::Builder::name). The
    /// [README](https://github.com/tidewheel/tidewheel/blob/main/crates/scheduler/README.md#metrics)
    /// lists them.
    pub fn publish_metrics(&self) {
        let (name, last) = &self.inner().published;
        let (stats, before) = {
            // Read under the lock, so that readings follow each other. The recorder is the user's
            // code, and is told after.
            let mut last = lock(last);
            let stats = self.stats();
            let counts = COUNTERS.map(|(_, read, _)| read(&stats)).to_vec();
            let before = mem::replace(&mut *last, (counts, stats.lateness.clone()));
            (stats, before)
        };
        let old = before.0.into_iter().chain(iter::repeat(0));
        for ((metric, read, help), old) in COUNTERS.into_iter().zip(old) {
            // Each time: nobody knows when a recorder is installed.
            describe_counter!(metric, help);
            let added = read(&stats).saturating_sub(old);
            counter!(metric, "scheduler" => name.clone()).increment(added);
        }
        for (metric, read, help) in GAUGES {
            describe_gauge!(metric, help);
            gauge!(metric, "scheduler" => name.clone()).set(read(&stats) as f64);
        }
        describe_histogram!(
            LATENESS,
            Unit::Seconds,
            "From a task's deadline to the call of its handler."
        );
        let late = histogram!(LATENESS, "scheduler" => name.clone());
        for (window, added) in stats.lateness.since(&before.1).windows() {
            let times = usize::try_from(added).unwrap_or(usize::MAX);
            late.record_many(window.as_secs_f64(), times);
        }
    }
}
