//! Many tasks, many threads, real time: every task runs exactly once, or was removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use tidewheel_scheduler::{Clock, Scheduler, SystemClock};

/// The record of a task's end.
const RAN: u8 = 1;
const REMOVED: u8 = 2;

/// Sets `count` tasks from four threads, moves each, removes a third, and waits for the rest to
/// run.
fn set_move_remove_and_run(count: u64, spread_ms: u64) {
    let ends: Arc<Vec<AtomicU8>> = Arc::new((0..count).map(|_| AtomicU8::new(0)).collect());
    let twice = Arc::new(AtomicU64::new(0));
    let (written, again) = (Arc::clone(&ends), Arc::clone(&twice));
    let scheduler = Scheduler::<u64, u64>::builder()
        .start(move |_, run| {
            if written[run.key as usize].swap(RAN, SeqCst) != 0 {
                again.fetch_add(1, SeqCst);
            }
        })
        .expect("valid");
    let threads = 4;
    thread::scope(|scope| {
        for first in 0..threads {
            let (scheduler, ends, twice) = (&scheduler, &ends, &twice);
            scope.spawn(move || {
                let keys = || (first..count).step_by(threads as usize);
                let delay = |key: u64, salt: u64| {
                    let mixed = (key ^ salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
                    Duration::from_millis(mixed % spread_ms)
                };
                for key in keys() {
                    let _ = scheduler.set(key, key, delay(key, 1)).expect("runs");
                }
                for key in keys() {
                    scheduler.move_to(&key, delay(key, 2));
                    let removed = key % 3 == 0 && scheduler.remove(&key).is_some();
                    if removed && ends[key as usize].swap(REMOVED, SeqCst) != 0 {
                        twice.fetch_add(1, SeqCst);
                    }
                }
            });
        }
    });
    let clock = SystemClock::new();
    let (mut ran, mut removed) = (0, 0);
    while ran + removed < count {
        assert!(clock.now() < Duration::from_secs(300), "tasks are lost");
        thread::yield_now();
        let ended = |how| ends.iter().filter(|end| end.load(SeqCst) == how).count() as u64;
        (ran, removed) = (ended(RAN), ended(REMOVED));
    }
    let stats = scheduler.stats();
    assert_eq!(twice.load(SeqCst), 0, "a task ended twice");
    assert_eq!(
        (stats.fired, stats.removed, stats.pending),
        (ran, removed, 0)
    );
}

#[test]
fn a_hundred_thousand_tasks_end_once_each() {
    set_move_remove_and_run(100_000, 300);
}

#[test]
#[ignore = "half a minute: run by name"]
fn a_million_tasks_end_once_each() {
    set_move_remove_and_run(1_000_000, 3000);
}
