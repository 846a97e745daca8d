//! The counts of a scheduler: each task is in one of them, at each moment.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

use tidewheel_scheduler::{BackPressure, Handle, ManualClock, Scheduler, Stats};

use crate::common::{Gate, MS, eventually};

/// Tasks that run once, by where they are.
fn all(stats: &Stats) -> u64 {
    let ended = stats.completed + stats.panicked + stats.recalled + stats.dropped;
    ended + (stats.pending + stats.queued + stats.running) as u64
}

#[test]
fn handlers_of_a_batch_find_the_rest_of_it_counted() {
    let clock = ManualClock::new();
    let run = Arc::new(AtomicU64::new(0));
    let runs = Arc::clone(&run);
    let builder = Scheduler::<u64, ()>::builder().shards(1);
    let scheduler = builder.manual(&clock, move |tasks, run| {
        let before = runs.fetch_add(1, SeqCst);
        let stats = tasks.stats();
        assert_eq!((stats.running, stats.completed), (1, before));
        assert_eq!((stats.queued as u64, stats.pending), (9 - before, 1));
        assert_eq!(all(&stats), 11, "at {}: {stats:?}", run.key);
    });
    let scheduler = scheduler.expect("valid");
    for key in 0..11 {
        let wait = if key == 0 { 20 * MS } else { MS };
        scheduler.set(key, (), wait).expect("runs");
    }
    clock.advance(MS);
    assert_eq!(scheduler.run_due(), 10);
    let stats = scheduler.stats();
    assert_eq!(
        (stats.completed, stats.panicked, run.load(SeqCst)),
        (10, 0, 10)
    );
}

/// A value that looks at the counts when it is dropped.
struct Looks {
    tasks: Arc<OnceLock<Handle<u64, Self>>>,
    wrong: Arc<AtomicU64>,
}

impl Drop for Looks {
    fn drop(&mut self) {
        if let Some(tasks) = self.tasks.get() {
            self.wrong
                .fetch_add(u64::from(all(&tasks.stats()) != 40), SeqCst);
        }
    }
}

#[test]
fn tasks_on_their_way_from_the_wheel_to_the_queue_are_counted() {
    let (gate, wrong) = (Arc::new(Gate::default()), Arc::new(AtomicU64::new(0)));
    let (shut, tasks) = (Arc::clone(&gate), Arc::new(OnceLock::new()));
    let clock = ManualClock::new();
    let builder = Scheduler::<u64, Looks>::builder()
        .workers(1)
        .shards(1)
        .queue(2);
    let builder = builder
        .clock(clock.clone())
        .back_pressure(BackPressure::Drop);
    let scheduler = builder.start(move |_, _| shut.pass()).expect("starts");
    for key in 0..40 {
        let (tasks, wrong) = (Arc::clone(&tasks), Arc::clone(&wrong));
        scheduler
            .set(key, Looks { tasks, wrong }, MS)
            .expect("runs");
    }
    assert!(tasks.set(scheduler.handle()).is_ok());
    clock.advance(MS);
    // What does not fit is dropped one by one, and each drop finds the others on their way.
    eventually("most are dropped", || scheduler.stats().dropped >= 37);
    let stats = scheduler.stats();
    assert_eq!((all(&stats), stats.pending), (40, 0), "{stats:?}");
    gate.open();
    eventually("the others run", || {
        scheduler.stats().completed + scheduler.stats().dropped == 40
    });
    assert_eq!(wrong.load(SeqCst), 0);
    let stats = scheduler.stats();
    assert_eq!((stats.queued, stats.running), (0, 0));
}
