//! Clocks that are not the system's: one that counts from the Unix epoch, one that is moved by
//! hand.

use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime};

use tidewheel_scheduler::{Clock, ManualClock, Scheduler};

use crate::common::{HOUR, MS, PATIENCE, eventually};

/// 54 years of milliseconds: more than 2^40 of them.
const EPOCH_AGE: Duration = Duration::from_secs(1_720_000_000);

/// A clock whose first reading is far from zero.
#[derive(Debug, Clone)]
struct Offset(ManualClock, Duration);

impl Clock for Offset {
    fn now(&self) -> Duration {
        self.1 + self.0.now()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.now()
    }

    fn wake_when_moved(&self, sleeper: &std::task::Waker) {
        self.0.wake_when_moved(sleeper);
    }
}

#[test]
fn a_clock_that_counts_from_the_unix_epoch_fires_nothing_early() {
    for first in [EPOCH_AGE, Duration::from_secs(u64::MAX >> 8)] {
        let hands = ManualClock::new();
        let (ran, runs) = channel();
        let scheduler = Scheduler::<u32, ()>::builder()
            .clock(Offset(hands.clone(), first))
            .start(move |_, run| ran.send(run.key).expect("the test lives"))
            .expect("valid");
        let _ = scheduler.set(1, (), HOUR).expect("runs");
        assert_eq!(scheduler.get(&1), Some(HOUR));
        let _ = scheduler.set(2, (), Duration::ZERO).expect("runs");
        assert_eq!(runs.recv_timeout(PATIENCE), Ok(2));
        hands.advance(HOUR - MS);
        let _ = scheduler.set(3, (), Duration::ZERO).expect("runs");
        assert_eq!(runs.recv_timeout(PATIENCE), Ok(3), "the first ran early");
        hands.advance(MS);
        assert_eq!(runs.recv_timeout(PATIENCE), Ok(1));
    }
}

#[test]
fn a_manual_clock_that_was_moved_before_fires_nothing_early() {
    let clock = ManualClock::new();
    clock.advance(EPOCH_AGE);
    let scheduler = Scheduler::<u32, ()>::builder()
        .manual(&clock, |_, _| {})
        .expect("valid");
    let _ = scheduler.set(1, (), HOUR).expect("runs");
    clock.advance(HOUR - MS);
    assert_eq!(scheduler.advance(scheduler.now(), u32::MAX).fired, 0);
    clock.advance(MS);
    assert_eq!(scheduler.advance(scheduler.now(), u32::MAX).fired, 1);
}

#[test]
fn moving_a_manual_clock_wakes_a_scheduler_that_sleeps_by_it() {
    let clock = ManualClock::new();
    let (ran, runs) = channel();
    let scheduler = Scheduler::<u32, ()>::builder()
        .clock(clock.clone())
        .start(move |_, run| ran.send(run.key).expect("the test lives"))
        .expect("valid");
    for key in 0..200 {
        let _ = scheduler.set(key, (), HOUR).expect("runs");
        clock.advance(HOUR - MS);
        clock.advance(MS);
        let run = runs.recv_timeout(PATIENCE);
        assert_eq!(run, Ok(key), "nobody was woken");
    }
    eventually("all are counted", || scheduler.stats().completed == 200);
}

#[test]
fn a_manual_clock_wakes_every_scheduler_and_forgets_those_that_ended() {
    let clock = ManualClock::new();
    let (ran, runs) = channel();
    let schedulers: Vec<_> = (0..20)
        .map(|_| {
            let ran = ran.clone();
            let scheduler = Scheduler::<u32, ()>::builder()
                .workers(1)
                .clock(clock.clone())
                .start(move |_, run| ran.send(run.key).expect("the test lives"))
                .expect("valid");
            let _ = scheduler.set(7, (), HOUR).expect("runs");
            scheduler
        })
        .collect();
    clock.advance(HOUR);
    for _ in &schedulers {
        assert_eq!(runs.recv_timeout(PATIENCE), Ok(7));
    }
    drop(schedulers);
    clock.advance(HOUR);
}

#[test]
fn a_manual_clock_stops_at_its_end_instead_of_wrapping_around() {
    let clock = ManualClock::new();
    clock.advance(HOUR);
    clock.advance(Duration::MAX);
    clock.advance(HOUR);
    assert_eq!(clock.now(), Duration::from_nanos(i64::MAX as u64));
}
