//! The scheduler with its threads: back-pressure, panics, stopping, periodic tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{channel, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};

use tidewheel_scheduler::{
    BackPressure, CatchUp, Clock, Error, ManualClock, Scheduler, SystemClock, Tasks,
};

use crate::common::{Gate, MS, PATIENCE, eventually};

#[test]
fn tasks_run_once_each_and_never_early() {
    let (ran, runs) = channel();
    let clock = SystemClock::new();
    let handler_clock = clock.clone();
    let scheduler = Scheduler::<u64, Duration>::builder()
        .start(move |_, run| {
            let early = run.value.saturating_sub(handler_clock.now());
            ran.send((run.key, early)).expect("the test lives");
        })
        .expect("valid");
    let count = 5000;
    for key in 0..count {
        let delay = Duration::from_micros(key * 37 % 90_000);
        let due = clock.now() + delay;
        let _ = scheduler.set(key, due, delay).expect("runs");
    }
    let mut keys: Vec<u64> = (0..count)
        .map(|_| {
            let (key, early) = runs.recv_timeout(PATIENCE).expect("all run");
            assert_eq!(early, Duration::ZERO, "a task ran early");
            key
        })
        .collect();
    keys.sort_unstable();
    assert!(keys.into_iter().eq(0..count));
    eventually("all are counted", || scheduler.stats().completed == count);
    let stats = scheduler.stats();
    assert_eq!((stats.set, stats.fired, stats.pending), (count, count, 0));
    assert_eq!(stats.lateness.count(), count);
}

#[test]
fn a_set_that_is_earlier_than_what_is_slept_for_wakes_the_timing_thread() {
    let (ran, runs) = channel();
    let scheduler = Scheduler::<u32, ()>::builder()
        .start(move |_, run| ran.send(run.key).expect("the test lives"))
        .expect("valid");
    let _ = scheduler
        .set(1, (), Duration::from_secs(3600))
        .expect("runs");
    for key in 2..50 {
        let _ = scheduler.set(key, (), MS).expect("runs");
        assert_eq!(runs.recv_timeout(PATIENCE), Ok(key));
    }
    assert!(scheduler.move_to(&1, MS));
    assert_eq!(runs.recv_timeout(PATIENCE), Ok(1));
}

#[test]
fn a_panicking_handler_is_counted_and_delays_nobody() {
    let (ran, runs) = channel();
    let scheduler = Scheduler::<u32, ()>::builder()
        .workers(1)
        .start(move |_, run| {
            assert!(run.key % 2 == 0, "an odd task");
            ran.send(run.key).expect("the test lives");
        })
        .expect("valid");
    for key in 0..10 {
        let _ = scheduler.set(key, (), MS).expect("runs");
    }
    for _ in 0..5 {
        runs.recv_timeout(PATIENCE).expect("even ones run");
    }
    eventually("all are counted", || {
        let stats = scheduler.stats();
        (stats.completed, stats.panicked) == (5, 5)
    });
}

#[test]
fn a_slow_handler_delays_nobody_while_a_worker_is_free() {
    let gate = Arc::new(Gate::default());
    let (ran, runs) = channel();
    let behind_gate = Arc::clone(&gate);
    let scheduler = Scheduler::<u32, bool>::builder()
        .workers(2)
        .start(move |_, run| {
            if run.value {
                behind_gate.pass();
            }
            ran.send(run.key).expect("the test lives");
        })
        .expect("valid");
    let _ = scheduler.set(0, true, Duration::ZERO).expect("runs");
    for key in 1..100 {
        let _ = scheduler.set(key, false, MS).expect("runs");
    }
    for _ in 1..100 {
        assert_ne!(runs.recv_timeout(PATIENCE).expect("the others run"), 0);
    }
    gate.open();
    assert_eq!(runs.recv_timeout(PATIENCE), Ok(0));
}

/// One worker at a gate, one task in the queue, others due.
fn overloaded(
    back_pressure: BackPressure,
) -> (
    Scheduler<u32, ()>,
    Arc<Gate>,
    std::sync::mpsc::Receiver<u32>,
) {
    let gate = Arc::new(Gate::default());
    let (ran, runs) = channel();
    let behind_gate = Arc::clone(&gate);
    let scheduler = Scheduler::<u32, ()>::builder()
        .workers(1)
        .queue(1)
        .back_pressure(back_pressure)
        .start(move |_, run| {
            behind_gate.pass();
            ran.send(run.key).expect("the test lives");
        })
        .expect("valid");
    let _ = scheduler.set(0, (), Duration::ZERO).expect("runs");
    eventually("a handler runs", || scheduler.stats().running == 1);
    let _ = scheduler.set(1, (), Duration::ZERO).expect("runs");
    eventually("a task waits", || scheduler.stats().queued == 1);
    (scheduler, gate, runs)
}

#[test]
fn run_late_keeps_due_tasks_pending_so_that_they_can_be_moved_and_removed() {
    let (scheduler, gate, runs) = overloaded(BackPressure::RunLate);
    for key in 2..6 {
        let _ = scheduler.set(key, (), Duration::ZERO).expect("runs");
    }
    eventually("they are due", || scheduler.get(&5) == Some(Duration::ZERO));
    assert_eq!(scheduler.remove(&2), Some(()));
    assert!(scheduler.move_to(&3, Duration::from_secs(3600)));
    gate.open();
    let mut ran: Vec<u32> = (0..4)
        .map(|_| runs.recv_timeout(PATIENCE).expect("runs"))
        .collect();
    ran.sort_unstable();
    assert_eq!(ran, [0, 1, 4, 5]);
    let stopped = scheduler.stop(PATIENCE);
    assert_eq!(stopped.pending.len(), 1);
    assert!(runs.try_recv().is_err(), "a removed task ran");
}

#[test]
fn drop_counts_what_it_drops() {
    let (scheduler, gate, runs) = overloaded(BackPressure::Drop);
    for key in 2..6 {
        let _ = scheduler.set(key, (), Duration::ZERO).expect("runs");
    }
    eventually("they are dropped", || scheduler.stats().dropped == 4);
    gate.open();
    scheduler.stop(PATIENCE);
    assert_eq!(runs.try_iter().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn wait_holds_setters_back_until_there_is_room_but_not_handlers() {
    let (scheduler, gate, runs) = overloaded(BackPressure::Wait);
    let (done, setter) = sync_channel(1);
    let handle = scheduler.handle();
    let thread = thread::spawn(move || {
        let _ = handle.set(2, (), Duration::ZERO).expect("runs");
        done.send(()).expect("the test lives");
    });
    // It has not been set however long one waits; a short while must do.
    assert!(
        setter.recv_timeout(50 * MS).is_err(),
        "the setter did not wait"
    );
    assert_eq!(scheduler.get(&2), None);
    gate.open();
    setter.recv_timeout(PATIENCE).expect("the setter goes on");
    thread.join().expect("no panic");
    let mut ran: Vec<u32> = (0..3)
        .map(|_| runs.recv_timeout(PATIENCE).expect("runs"))
        .collect();
    ran.sort_unstable();
    assert_eq!(ran, [0, 1, 2]);
}

#[test]
fn a_stop_waits_for_its_whole_limit() {
    let gate = Arc::new(Gate::default());
    let (of_handler, (began, begun)) = (Arc::clone(&gate), channel());
    let scheduler = Scheduler::<u32, ()>::builder()
        .workers(1)
        .start(move |_, _| {
            began.send(()).expect("the test lives");
            of_handler.pass();
        });
    let scheduler = scheduler.expect("valid");
    scheduler.set(1, (), Duration::ZERO).expect("runs");
    begun.recv_timeout(PATIENCE).expect("it runs");
    let clock = SystemClock::new();
    let start = clock.now();
    let stopped = scheduler.stop(40 * MS);
    assert!(clock.now() - start >= 40 * MS);
    assert_eq!(stopped.running, 1);
    gate.open();
}

#[test]
fn a_handler_that_sets_tasks_under_wait_does_not_wait_for_itself() {
    let (ran, runs) = channel();
    let scheduler = Scheduler::<u32, ()>::builder()
        .workers(1)
        .queue(1)
        .back_pressure(BackPressure::Wait)
        .start(move |scheduler, run| {
            if run.key == 0 {
                for key in 1..50 {
                    let _ = scheduler.set(key, (), Duration::ZERO).expect("runs");
                }
            }
            ran.send(run.key).expect("the test lives");
        })
        .expect("valid");
    let _ = scheduler.set(0, (), Duration::ZERO).expect("runs");
    for _ in 0..50 {
        runs.recv_timeout(PATIENCE).expect("all run");
    }
}

#[test]
fn stop_returns_what_was_pending_and_takes_no_more() {
    let scheduler = Scheduler::<u32, &str>::builder()
        .start(|_, _| {})
        .expect("valid");
    let _ = scheduler
        .set(1, "later", Duration::from_secs(60))
        .expect("runs");
    let stopped = scheduler.stop(PATIENCE);
    assert_eq!(stopped.running, 0);
    let [(1, "later", left)] = stopped.pending[..] else {
        panic!("one task was pending: {stopped:?}")
    };
    assert!(left <= 60_001 * MS && left > 30_000 * MS, "{left:?}");
    assert!(matches!(scheduler.set(2, "never", MS), Err(Error::Stopped)));
    assert!(!scheduler.move_to(&1, MS));
    assert!(scheduler.stop(PATIENCE).pending.is_empty());
}

#[test]
fn stop_waits_for_handlers_no_longer_than_its_limit() {
    let (scheduler, gate, runs) = overloaded(BackPressure::RunLate);
    let stopped = scheduler.stop(10 * MS);
    assert_eq!(stopped.running, 1);
    assert_eq!(
        stopped.pending,
        [(1, (), Duration::ZERO)],
        "what waited is given back"
    );
    gate.open();
    assert_eq!(runs.recv_timeout(PATIENCE), Ok(0), "what ran runs on");
    // The channel ends with the last thread that could run a handler.
    drop(scheduler);
    assert_eq!(runs.iter().next(), None, "something else ran");
}

#[test]
fn periodic_tasks_keep_their_rhythm_until_they_are_removed() {
    let clock = ManualClock::new();
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let scheduler = Scheduler::<&str, u64>::builder()
        .manual(&clock, move |_, run| {
            counted.fetch_add(run.value, SeqCst);
        })
        .expect("valid");
    let old = scheduler
        .set_periodic("beat", 1, 5 * MS, 10 * MS, CatchUp::Skip)
        .expect("runs");
    assert_eq!(old, None);
    for _ in 0..100 {
        clock.advance(MS);
        scheduler.advance(scheduler.now(), u32::MAX);
    }
    assert_eq!(count.load(SeqCst), 10, "at 5, 15, ... 95");
    // A stall of 30 periods is skipped, and counted.
    clock.advance(300 * MS);
    scheduler.advance(scheduler.now(), u32::MAX);
    assert_eq!(count.load(SeqCst), 11);
    assert_eq!(scheduler.stats().missed, 29);
    assert_eq!(scheduler.remove("beat"), Some(1));
    clock.advance(300 * MS);
    scheduler.advance(scheduler.now(), u32::MAX);
    assert_eq!(count.load(SeqCst), 11);
}

#[test]
fn no_run_of_a_periodic_task_begins_after_its_removal() {
    let (clock, ran) = (ManualClock::new(), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&ran);
    let scheduler = Scheduler::<u32, ()>::builder().manual(&clock, move |scheduler, run| {
        counted.fetch_add(1, SeqCst);
        assert_eq!(scheduler.remove(&run.key), Some(()));
    });
    let scheduler = scheduler.expect("valid");
    let _ = scheduler
        .set_periodic(1, (), MS, MS, CatchUp::Burst(10))
        .expect("runs");
    clock.advance(5 * MS);
    scheduler.run_due();
    assert_eq!((ran.load(SeqCst), scheduler.stats().recalled), (1, 4));
}

#[test]
fn a_removal_recalls_the_run_that_waits_for_a_worker() {
    for how in [0, 1, 2] {
        let gate = Arc::new(Gate::default());
        let (ran, runs) = channel();
        let at_gate = Arc::clone(&gate);
        let scheduler = Scheduler::<u32, ()>::builder()
            .workers(1)
            .start(move |_, run| {
                if run.key == 0 {
                    at_gate.pass();
                }
                ran.send(run.key).expect("the test lives");
            });
        let scheduler = scheduler.expect("valid");
        let _ = scheduler.set(0, (), Duration::ZERO).expect("runs");
        eventually("it runs", || scheduler.stats().running == 1);
        let period = Duration::from_secs(3600);
        let _ = scheduler
            .set_periodic(1, (), Duration::ZERO, period, CatchUp::Skip)
            .expect("runs");
        eventually("it waits", || scheduler.stats().queued == 1);
        match how {
            0 => assert_eq!(scheduler.remove(&1), Some(())),
            1 => assert_eq!(scheduler.drain(|_, ()| ()), 1),
            // What is replaced has fired all the same.
            _ => assert_eq!(scheduler.set(1, (), period).expect("runs"), Some(())),
        }
        gate.open();
        assert_eq!(scheduler.stop(PATIENCE).running, 0);
        let ran: Vec<u32> = runs.try_iter().collect();
        assert_eq!(ran, if how == 2 { vec![0, 1] } else { vec![0] });
    }
}

#[test]
fn there_is_no_next_deadline_when_nothing_is_pending() {
    let mut tasks = Tasks::<u32, ()>::new();
    for now in [0, 1_000_000, 2_000_000] {
        assert_eq!(tasks.set(1, (), now + 1000, now), None);
        assert_eq!(tasks.remove(&1), Some(()));
        assert_eq!(tasks.next_deadline(), None);
        assert_eq!(tasks.advance(now, 100, |_| ()).next_deadline, None);
        assert_eq!(tasks.set(1, (), now + 5000, now + 2000), None);
        let mut ran = 0;
        tasks.advance(now + 4999, u32::MAX, |_| ran += 1);
        assert!(ran == 0 && tasks.next_deadline().is_some());
        tasks.advance(now + 5000, u32::MAX, |_| ran += 1);
        assert_eq!((ran, tasks.next_deadline()), (1, None));
        tasks.validate();
    }
}

#[test]
fn a_wall_time_is_a_delay_and_the_past_is_now() {
    let clock = ManualClock::new();
    let scheduler = Scheduler::<u32, ()>::builder()
        .manual(&clock, |_, _| {})
        .expect("valid");
    clock.advance(1000 * MS);
    let at = |ms| SystemTime::UNIX_EPOCH + ms * MS;
    let _ = scheduler.set_at(1, (), at(1500)).expect("runs");
    let _ = scheduler.set_at(2, (), at(10)).expect("runs");
    assert_eq!(scheduler.get(&1), Some(500 * MS));
    assert_eq!(scheduler.get(&2), Some(Duration::ZERO));
    assert_eq!(
        scheduler
            .forecast()
            .iter()
            .map(|window| window.tasks)
            .sum::<u64>(),
        2
    );
    assert_eq!(scheduler.advance(scheduler.now(), 100).fired, 1);
}

#[test]
fn numbers_out_of_range_are_refused() {
    let refused =
        |scheduler: Result<Scheduler<u8, ()>, Error>| matches!(scheduler, Err(Error::Config(_)));
    let builder = Scheduler::<u8, ()>::builder;
    assert!(refused(builder().workers(0).start(|_, _| {})));
    assert!(refused(builder().queue(0).start(|_, _| {})));
    assert!(refused(builder().shards(3).start(|_, _| {})));
}
