//! The bugs of go-zero's TimingWheel, by name, and its own scenarios: all in virtual time.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_scheduler::{BackPressure, ManualClock, Scheduler};

const MS: Duration = Duration::from_millis(1);
/// go-zero's wheel in these scenarios: ten slots of a second.
const INTERVAL: u64 = 1000;
const SLOTS: u64 = 10;

/// A scheduler in virtual time that writes down what ran, and when.
struct Bench {
    clock: ManualClock,
    now: u64,
    scheduler: Scheduler<u32, u32>,
    runs: Receiver<(u32, u32, Duration)>,
}

impl Bench {
    fn new() -> Self {
        let clock = ManualClock::new();
        let (ran, runs) = channel();
        let scheduler = Scheduler::<u32, u32>::builder()
            .manual(&clock, move |_, run| {
                ran.send((run.key, run.value, run.late))
                    .expect("the bench lives");
            })
            .expect("valid");
        Self {
            clock,
            now: 0,
            scheduler,
            runs,
        }
    }

    /// Goes on to a millisecond, one at a time, and returns what ran, with the millisecond.
    fn until(&mut self, ms: u64) -> Vec<(u64, u32, u32)> {
        let mut all = Vec::new();
        while self.now < ms {
            self.clock.advance(MS);
            self.now += 1;
            while self.scheduler.advance(self.scheduler.now(), 64).backlog {}
            all.extend(
                self.runs
                    .try_iter()
                    .map(|(key, value, _)| (self.now, key, value)),
            );
        }
        all
    }

    fn set(&self, key: u32, value: u32, delay_ms: u64) -> Option<u32> {
        let delay = Duration::from_millis(delay_ms);
        self.scheduler.set(key, value, delay).expect("runs")
    }

    fn move_to(&self, key: u32, delay_ms: u64) -> bool {
        self.scheduler
            .move_to(&key, Duration::from_millis(delay_ms))
    }
}

#[test]
fn a_move_is_never_off_by_a_revolution() {
    // Every phase of the wheel, every slot of the first deadline, every slot of the move.
    let step = usize::try_from(INTERVAL / 2).expect("small");
    for phase in (0..SLOTS * INTERVAL).step_by(step * 3) {
        let mut bench = Bench::new();
        bench.until(phase);
        let mut expected = Vec::new();
        let mut key = 0;
        for first in (500..=2 * SLOTS * INTERVAL).step_by(step * 5) {
            for second in (500..=2 * SLOTS * INTERVAL).step_by(step * 3) {
                key += 1;
                assert_eq!(bench.set(key, key, first), None);
                assert!(bench.move_to(key, second));
                expected.push((phase + second, key, key));
            }
        }
        let mut ran = bench.until(phase + 2 * SLOTS * INTERVAL + 1);
        ran.sort_unstable();
        expected.sort_unstable();
        assert_eq!(ran, expected);
    }
}

#[test]
fn a_set_after_a_drain_fires() {
    let mut bench = Bench::new();
    bench.set(1, 10, 3000);
    let mut drained = Vec::new();
    bench
        .scheduler
        .drain(|key, value| drained.push((key, value)));
    assert_eq!(drained, [(1, 10)]);
    assert_eq!(
        bench.set(1, 11, 3000),
        None,
        "the index forgot the drained task"
    );
    assert_eq!(bench.until(5000), [(3000, 1, 11)]);
}

#[test]
fn a_drain_whose_callback_calls_the_scheduler_does_not_deadlock() {
    let mut bench = Bench::new();
    for key in 0..100 {
        bench.set(key, key, 1000);
    }
    let scheduler = bench.scheduler.handle();
    let count = bench.scheduler.drain(|key, value| {
        assert_eq!(scheduler.remove(&key), None, "a drained task is nobody's");
        assert!(!scheduler.move_to(&key, MS));
        let _ = scheduler.set(key + 1000, value, 5 * MS).expect("runs");
        let _ = scheduler.len();
    });
    // Shards that come later hold some of the new tasks, so a few are drained again.
    assert!(count >= 100);
    scheduler.drain(|_, _| {});
    assert_eq!(bench.until(2000), []);
}

#[test]
fn a_move_shorter_than_a_tick_fires_once() {
    let mut bench = Bench::new();
    bench.set(1, 10, 3000);
    assert!(bench.scheduler.move_to(&1, Duration::from_micros(1)));
    assert_eq!(bench.until(10_000), [(1, 1, 10)]);
    assert!(!bench.move_to(1, 0), "it has run");
}

#[test]
fn lost_ticks_are_made_up() {
    let mut bench = Bench::new();
    for key in 1..=60 {
        bench.set(key, 0, u64::from(key) * INTERVAL);
    }
    // Nobody calls for 40 s: a ticker would have dropped all but one tick.
    bench.clock.advance(Duration::from_secs(40));
    bench.now = 40_000;
    while bench.scheduler.advance(bench.scheduler.now(), 7).backlog {}
    let ran: Vec<u32> = bench.runs.try_iter().map(|(key, ..)| key).collect();
    assert_eq!(ran.len(), 40);
    assert!(ran.iter().all(|key| *key <= 40));
    // And the rest are not late for it.
    let rest: Vec<(u64, u32, u32)> = (41..=60)
        .map(|key| (u64::from(key) * INTERVAL, key, 0))
        .collect();
    assert_eq!(bench.until(70_000), rest);
}

#[test]
fn tasks_of_one_tick_run_at_the_same_time() {
    // Each handler waits for the other: one after another, neither would end.
    let meeting = Arc::new(std::sync::Barrier::new(2));
    let (ran, runs) = channel();
    let scheduler = Scheduler::<u32, ()>::builder()
        .workers(2)
        .back_pressure(BackPressure::RunLate)
        .start(move |_, run| {
            meeting.wait();
            ran.send(run.key).expect("the test lives");
        })
        .expect("valid");
    for key in 0..2 {
        let _ = scheduler.set(key, (), 5 * MS).expect("runs");
    }
    let wait = Duration::from_secs(20);
    let mut keys = [
        runs.recv_timeout(wait).expect("ran"),
        runs.recv_timeout(wait).expect("ran"),
    ];
    keys.sort_unstable();
    assert_eq!(keys, [0, 1]);
}

#[test]
fn a_delay_is_rounded_up_never_down() {
    let mut bench = Bench::new();
    bench.clock.advance(Duration::from_micros(700));
    let delay = Duration::from_micros(1900);
    let _ = bench.scheduler.set(1, 0, delay).expect("runs");
    assert_eq!(bench.scheduler.get(&1), Some(Duration::from_micros(2300)));
    // 0.7 + 1.9 = 2.6: at 2.7 the tick has not begun, at 3.7 it has.
    assert_eq!(bench.until(10), [(3, 1, 0)]);
}

#[test]
fn a_set_replaces_value_and_time_and_stays_one_task() {
    let mut bench = Bench::new();
    assert_eq!(bench.set(1, 10, 1000), None);
    assert_eq!(bench.set(1, 11, 4000), Some(10));
    assert_eq!(bench.scheduler.len(), 1);
    assert_eq!(bench.until(10_000), [(4000, 1, 11)]);
}

#[test]
fn a_removed_task_never_runs_and_its_key_is_free() {
    let mut bench = Bench::new();
    bench.set(1, 10, 1000);
    assert_eq!(bench.scheduler.remove(&1), Some(10));
    assert_eq!(bench.scheduler.remove(&1), None);
    assert!(!bench.move_to(1, 10));
    bench.set(1, 11, 2000);
    assert_eq!(bench.until(10_000), [(2000, 1, 11)]);
}

#[test]
fn a_set_during_its_own_handler_is_a_new_task() {
    let clock = ManualClock::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let saw = Arc::clone(&seen);
    let scheduler = Scheduler::<u32, u32>::builder()
        .manual(&clock, move |scheduler, run| {
            assert_eq!(
                scheduler.remove(&run.key),
                None,
                "it is the handler's already"
            );
            assert!(!scheduler.move_to(&run.key, MS));
            if run.value < 3 {
                let old = scheduler
                    .set(run.key, run.value + 1, 10 * MS)
                    .expect("runs");
                assert_eq!(old, None);
            }
            saw.lock().expect("unpoisoned").push(run.value);
        })
        .expect("valid");
    let _ = scheduler.set(1, 1, 10 * MS).expect("runs");
    for _ in 0..100 {
        clock.advance(MS);
        scheduler.advance(scheduler.now(), 100);
    }
    assert_eq!(*seen.lock().expect("unpoisoned"), [1, 2, 3]);
}
