//! Measures our scheduler in real time: lateness of many tasks, and one task moved a million times.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tidewheel_scheduler::{Scheduler, Tasks};

use crate::clock;
use crate::heap::allocated;
use crate::latency::Latencies;
use crate::locks::lock;
use crate::report::Report;
use crate::rng::Rng;

/// All tasks must have run so long after the last deadline.
const GRACE: Duration = Duration::from_secs(60);
/// The last task is set so long before the first deadline.
const HEAD_START_NS: u64 = 500_000_000;

/// Sets so many tasks, their deadlines spread at random over so many seconds, and lets the handlers
/// see how late they are called. Lateness counts from the nanosecond that was asked for.
pub(super) fn run((count, seconds): (u32, u32), report: &mut Report) -> Result<()> {
    let seen = Arc::new(Mutex::new((Latencies::default(), 0_u64)));
    let theirs = Arc::clone(&seen);
    let scheduler = Scheduler::<u32, u64>::builder().start(move |_, run| {
        let late_ns = clock::mono_ns().checked_sub(run.value);
        let mut seen = lock(&theirs);
        match late_ns {
            Some(late_ns) => seen.0.record(late_ns.max(1)),
            None => seen.1 += 1,
        }
    });
    let scheduler = scheduler.context("cannot start the scheduler")?;
    let mut rng = Rng::new(7);
    let start_ns = clock::mono_ns() + HEAD_START_NS;
    let spread_ns = u64::from(seconds) * 1_000_000_000;
    for key in 0..count {
        let due_ns = start_ns + rng.below(spread_ns);
        let delay = Duration::from_nanos(due_ns.saturating_sub(clock::mono_ns()));
        let set = scheduler.set(key, due_ns, delay);
        set.context("cannot set a task")?;
    }
    let set_by_ns = clock::mono_ns();
    let last_ns = start_ns + spread_ns + GRACE.as_nanos() as u64;
    let all = u64::from(count);
    loop {
        let stats = scheduler.stats();
        if stats.completed + stats.panicked >= all {
            break;
        }
        if clock::mono_ns() > last_ns {
            bail!("{} of {all} tasks ran", stats.completed);
        }
        clock::sleep_until(clock::mono_ns() + 50_000_000);
    }
    if set_by_ns > start_ns {
        let note = "live: tasks were still being set when the first were due";
        report.notes.push(note.to_owned());
    }
    let seen = lock(&seen);
    let (late, early) = &*seen;
    let figures = &mut report.figures;
    figures.push("live_early", *early as f64);
    for (name, late_us) in late.percentiles() {
        figures.push(format!("live_late_{name}_us"), late_us);
    }
    Ok(())
}

/// A heartbeat: one task of a thousand is moved so often, a millisecond apart.
pub(super) fn moves_of_one(moves: u64, report: &mut Report) {
    let mut tasks: Tasks<u64, u64> = Tasks::new();
    for key in 0..1_000 {
        tasks.set(key, key, 1 << 39, 0);
    }
    let before = allocated();
    let mut most = before;
    let from_ns = clock::mono_ns();
    for now in 0..moves {
        // Later and earlier in turn.
        let delay = if now % 2 == 0 { 30_000 } else { 15_000 };
        tasks.move_to(&7, now + delay, now);
        tasks.advance(now, u32::MAX, |due| {
            std::hint::black_box(due);
        });
        if now % 1_024 == 0 {
            most = most.max(allocated());
        }
    }
    let ns = clock::mono_ns() - from_ns;
    let figures = &mut report.figures;
    figures.push("move_one_ns", ns as f64 / moves as f64);
    figures.push("move_one_bytes", (most - before) as f64);
}
