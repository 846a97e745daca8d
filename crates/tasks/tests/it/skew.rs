//! The engine's clock decides when clocks differ.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_tasks::{ManualClock, MemoryStore, Task, TaskStore, Worker, wait};

use crate::common::{EPOCH, MS};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_worker_an_hour_ahead_or_behind_runs_on_time_and_claims_nothing_ahead() {
    for wall in [EPOCH + HOUR, EPOCH - HOUR, EPOCH] {
        let (engine, mine) = (ManualClock::new(), ManualClock::new());
        engine.set_wall(EPOCH);
        mine.set_wall(wall);
        let store = Arc::new(MemoryStore::with_clock(engine.clone()));
        let late = Arc::new(Mutex::new(Vec::new()));
        let (lates, clock) = (Arc::clone(&late), engine.clone());
        let worker = Worker::builder(Arc::clone(&store)).manual(&mine, move |run| {
            let now = tidewheel_tasks::Clock::wall(&clock);
            let late = now.duration_since(run.due().to_system_time());
            lates
                .lock()
                .expect("no panic")
                .push(late.expect("not early"));
        });
        let worker = worker.expect("a worker");
        wait(store.schedule(Task::new("a", "").after(MS(2000)))).expect("scheduled");
        let mut ahead = 0;
        for _ in 0..2100 {
            worker.turn();
            engine.advance(MS(1));
            mine.advance(MS(1));
            ahead = ahead.max(worker.stats().held);
        }
        let stats = worker.stats();
        assert_eq!(stats.skewed, wall != EPOCH);
        assert_eq!(
            (stats.skews, ahead),
            (u64::from(stats.skewed), usize::from(!stats.skewed))
        );
        let late = late.lock().expect("no panic");
        assert_eq!(late.len(), 1);
        // It asks about every 50 ms, and each pause is up to a quarter longer.
        assert!(late[0] <= MS(64), "{late:?}");
    }
}

#[test]
fn an_engine_whose_clock_is_set_back_runs_nothing_early() {
    let (engine, mine) = (ManualClock::new(), ManualClock::new());
    engine.set_wall(EPOCH);
    mine.set_wall(EPOCH);
    let store = Arc::new(MemoryStore::with_clock(engine.clone()));
    let worker = Worker::builder(Arc::clone(&store));
    let worker = worker.manual(&mine, |_| ()).expect("a worker");
    let due = wait(store.schedule(Task::new("a", "").after(MS(3000)))).expect("scheduled");
    worker.turn();
    engine.set_wall(EPOCH - MS(800));
    for _ in 0..3799 {
        engine.advance(MS(1));
        mine.advance(MS(1));
        worker.turn();
        assert_eq!(worker.stats().ran, 0);
    }
    for _ in 0..3 {
        engine.advance(MS(1));
        mine.advance(MS(1));
        worker.turn();
    }
    assert!(wait(store.now()).expect("the time") >= due);
    assert_eq!(worker.stats().ran, 1);
}
