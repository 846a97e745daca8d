//! Unusual uses of a scheduler: calls from within its own handlers, a stop while everything is in
//! progress, clocks that move by decades and back.

use std::any::Any;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, SystemTime};

use tidewheel_scheduler::{
    BackPressure, CatchUp, Clock, Error, Handle, ManualClock, Progress, Scheduler,
};

use crate::common::{Gate, HOUR, MS, PATIENCE, eventually};

/// The outcome of a body on a thread of its own, or a failure if it hangs.
fn in_time<T: Send + 'static>(what: &str, body: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, outcome): (_, Receiver<T>) = channel();
    thread::spawn(move || drop(done.send(body())));
    let outcome = outcome.recv_timeout(PATIENCE);
    outcome.unwrap_or_else(|_| panic!("{what} hangs, or panics"))
}

fn panics<T>(body: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(body)).is_err()
}

thread_local! {
    static WITHIN: RefCell<Option<Handle<Nosy, u32>>> = const { RefCell::new(None) };
}

/// A key whose equality calls the scheduler that asks it.
#[derive(Clone)]
struct Nosy(u32);

impl PartialEq for Nosy {
    fn eq(&self, other: &Self) -> bool {
        let scheduler = WITHIN.with_borrow_mut(Option::take);
        if let Some(scheduler) = scheduler {
            scheduler.remove(&Self(7));
        }
        self.0 == other.0
    }
}

impl Eq for Nosy {}

impl Hash for Nosy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn code_that_runs_under_a_lock_and_calls_the_scheduler_panics_instead_of_waiting_for_itself() {
    in_time("a call from within", || {
        let scheduler = Scheduler::<Nosy, u32>::builder()
            .shards(1)
            .start(|_, _| {})
            .expect("valid");
        let _ = scheduler.set(Nosy(1), 1, HOUR).expect("runs");
        assert!(panics(|| scheduler.peek(&Nosy(1), |_| scheduler.len())));
        assert!(panics(|| scheduler.move_or_set(Nosy(2), HOUR, || {
            scheduler.forecast().len() as u32
        })));
        WITHIN.with_borrow_mut(|within| *within = Some(scheduler.handle()));
        assert!(panics(|| scheduler.remove(&Nosy(1))));
        // Nothing was changed, and nothing is locked.
        assert_eq!(scheduler.len(), 1);
        assert_eq!(scheduler.remove(&Nosy(1)), Some(1));
    });
}

#[test]
fn one_scheduler_may_be_called_from_within_another() {
    in_time("a call of another scheduler", || {
        let schedulers: Vec<_> = (0..3)
            .map(|_| Scheduler::<u32, u32>::builder().shards(1).start(|_, _| {}))
            .map(|scheduler| scheduler.expect("valid"))
            .collect();
        for scheduler in &schedulers {
            let _ = scheduler.set(1, 1, HOUR).expect("runs");
        }
        let [a, b, c] = &schedulers[..] else {
            unreachable!("three")
        };
        let seen = a.peek(&1, |_| b.peek(&1, |_| c.remove(&1)));
        assert_eq!(seen, Some(Some(Some(1))));
        assert!(panics(|| a.peek(&1, |_| b.peek(&1, |_| a.len()))));
    });
}

#[test]
fn a_handler_that_advances_its_own_scheduler_panics_instead_of_waiting_for_itself() {
    in_time("an advance from within a handler", || {
        let clock = ManualClock::new();
        let own: Arc<OnceLock<Scheduler<u32, ()>>> = Arc::default();
        let of_handler = Arc::clone(&own);
        let scheduler = Scheduler::<u32, ()>::builder().manual(&clock, move |handle, run| {
            handle.set(run.key + 1, (), MS).expect("runs");
            of_handler.get().expect("set").advance(HOUR, 1);
        });
        let scheduler = own.get_or_init(|| scheduler.expect("valid"));
        let _ = scheduler.set(1, (), Duration::ZERO).expect("runs");
        assert_eq!(scheduler.advance(scheduler.now(), u32::MAX).fired, 1);
        assert_eq!((scheduler.stats().panicked, scheduler.len()), (1, 1));
    });
}

type Anything = Box<dyn Any + Send>;

#[test]
fn the_last_owner_may_be_a_value_that_the_timing_thread_drops() {
    let gate = Arc::new(Gate::default());
    let (ended, ends) = channel();
    let behind_gate = Arc::clone(&gate);
    let scheduler = Scheduler::<u32, Anything>::builder()
        .workers(1)
        .queue(1)
        .back_pressure(BackPressure::Drop)
        .start(move |_, _| {
            behind_gate.pass();
            // The channel ends with the last thread that has the handler.
            let _ = &ended as &std::sync::mpsc::Sender<()>;
        })
        .expect("valid");
    let _ = scheduler
        .set(0, Box::new(()), Duration::ZERO)
        .expect("runs");
    eventually("a handler runs", || scheduler.stats().running == 1);
    let _ = scheduler
        .set(1, Box::new(()), Duration::ZERO)
        .expect("runs");
    eventually("a task waits", || scheduler.stats().queued == 1);
    let handle = scheduler.handle();
    let _ = handle.set(2, Box::new(scheduler), 20 * MS).expect("runs");
    eventually("it is dropped", || handle.stats().dropped == 1);
    drop(handle);
    gate.open();
    assert!(
        ends.recv_timeout(PATIENCE)
            .is_err_and(|error| { error == std::sync::mpsc::RecvTimeoutError::Disconnected })
    );
}

#[test]
fn a_stop_while_tasks_are_set_moved_and_run_loses_no_task() {
    for round in 0..30u64 {
        let back_pressure = [BackPressure::RunLate, BackPressure::Wait][round as usize % 2];
        let ran = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&ran);
        let scheduler = Scheduler::<u64, ()>::builder()
            .workers(2)
            .queue(2)
            .back_pressure(back_pressure)
            .start(move |scheduler, run| {
                counted.fetch_add(1, SeqCst);
                // May be refused: then it was stopped.
                drop(scheduler.move_or_set(run.key, HOUR, || ()));
            })
            .expect("valid");
        let (accepted, stopped) = thread::scope(|scope| {
            let scheduler = &scheduler;
            let setters: Vec<_> = (0..3)
                .map(|first| {
                    scope.spawn(move || {
                        let keys = (first..).step_by(3);
                        let sets = keys.map(|key| scheduler.set(key, (), MS * (key % 3) as u32));
                        sets.take_while(Result::is_ok).count() as u64
                    })
                })
                .collect();
            eventually("some have run", || ran.load(SeqCst) > 20 * round);
            let stops: Vec<_> = (0..2)
                .map(|_| scope.spawn(move || scheduler.stop(PATIENCE)))
                .collect();
            let count = |ended: thread::ScopedJoinHandle<'_, u64>| ended.join().expect("ends");
            let accepted: u64 = setters.into_iter().map(count).sum();
            let stopped = stops.into_iter().map(|stop| stop.join().expect("ends"));
            (accepted, stopped.collect::<Vec<_>>())
        });
        let (mut soon, mut later) = (0, 0);
        for (_, (), left) in stopped.iter().flat_map(|stopped| &stopped.pending) {
            assert!(
                *left <= 3 * MS || *left > HOUR / 2,
                "longer than was asked for"
            );
            *(if *left > MS * 10 {
                &mut later
            } else {
                &mut soon
            }) += 1;
        }
        assert_eq!(ran.load(SeqCst) + soon, accepted, "round {round}");
        // What handlers set before the stop is pending, what came after it was refused.
        assert!(later <= ran.load(SeqCst));
        assert!(stopped.iter().all(|stopped| stopped.running == 0));
    }
}

#[test]
fn deadlines_decades_away_are_kept_and_can_be_moved_near() {
    const AGE: Duration = Duration::from_secs(34 * 365 * 86_400);
    let clock = ManualClock::new();
    let ran = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&ran);
    let scheduler = Scheduler::<u32, ()>::builder()
        .manual(&clock, move |_, run| {
            counted.fetch_add(1 << run.key, SeqCst);
        })
        .expect("valid");
    let far = SystemTime::UNIX_EPOCH + AGE * 1000;
    let _ = scheduler.set(0, (), Duration::MAX).expect("runs");
    let _ = scheduler.set_at(1, (), far).expect("runs");
    for (key, first, period) in [(2, Duration::MAX, MS), (3, HOUR, Duration::MAX)] {
        let _ = scheduler
            .set_periodic(key, (), first, period, CatchUp::Burst(u32::MAX))
            .expect("runs");
    }
    for key in 0..3 {
        assert!(scheduler.get(&key).is_some_and(|left| left > AGE));
    }
    clock.advance(HOUR);
    scheduler.advance(scheduler.now(), u32::MAX);
    assert_eq!(ran.swap(0, SeqCst), 1 << 3);
    assert!(scheduler.move_to(&0, MS) && scheduler.move_to(&1, Duration::MAX));
    assert!(scheduler.move_to(&1, 2 * MS) && scheduler.move_to(&2, Duration::MAX));
    clock.advance(MS);
    scheduler.advance(scheduler.now(), u32::MAX);
    assert_eq!(ran.swap(0, SeqCst), 1);
    clock.advance(MS);
    scheduler.advance(scheduler.now(), u32::MAX);
    assert_eq!(ran.swap(0, SeqCst), 1 << 1);
    // Fifteen years at once.
    clock.advance(AGE / 2);
    assert_eq!(scheduler.advance(scheduler.now(), u32::MAX).fired, 0);
    assert_eq!(scheduler.len(), 2);
}

#[test]
fn a_budget_of_nothing_does_nothing_and_says_so() {
    let clock = ManualClock::new();
    let scheduler = Scheduler::<u32, ()>::builder()
        .manual(&clock, |_, _| {})
        .expect("valid");
    let _ = scheduler.set(1, (), Duration::ZERO).expect("runs");
    let Progress { fired, backlog, .. } = scheduler.advance(scheduler.now(), 0);
    assert_eq!((fired, backlog), (0, true));
}

/// A clock that can be set back.
#[derive(Debug, Clone, Default)]
struct Loose(Arc<AtomicU64>);

impl Clock for Loose {
    fn now(&self) -> Duration {
        MS * self.0.load(SeqCst) as u32
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

#[test]
fn a_clock_that_jumps_back_fires_nothing_early() {
    let clock = Loose::default();
    clock.0.store(1_000, SeqCst);
    let scheduler = Scheduler::<u32, ()>::builder()
        .clock(clock.clone())
        .start(|_, _| {})
        .expect("valid");
    let _ = scheduler.set(1, (), Duration::ZERO).expect("runs");
    clock.0.store(2_000, SeqCst);
    // Reads the clock.
    assert!(scheduler.forecast().len() <= 1);
    eventually("the first has run", || scheduler.stats().completed == 1);
    for back in [1_500, 10] {
        clock.0.store(back, SeqCst);
        let _ = scheduler.set(2, (), 100 * MS).expect("runs");
        assert_eq!(scheduler.get(&2), Some(100 * MS));
    }
    // The step back was no time at all; from then on it goes on.
    clock.0.store(109, SeqCst);
    let _ = scheduler.set(3, (), Duration::ZERO).expect("runs");
    eventually("the other has run", || scheduler.stats().completed == 2);
    assert_eq!(scheduler.get(&2), Some(MS));
}

/// A clock that panics now and then.
#[derive(Debug, Clone)]
struct Flaky(ManualClock, Arc<AtomicU64>);

impl Clock for Flaky {
    fn now(&self) -> Duration {
        let is_caller = thread::current()
            .name()
            .is_none_or(|name| !name.starts_with("flaky"));
        let reading = self.1.fetch_add(u64::from(!is_caller), SeqCst);
        assert!(is_caller || reading % 3 != 1, "a clock that panics");
        self.0.now()
    }

    fn wall(&self) -> SystemTime {
        self.0.wall()
    }

    fn wake_when_moved(&self, sleeper: &std::task::Waker) {
        self.0.wake_when_moved(sleeper);
    }
}

#[test]
fn a_clock_that_panics_costs_runs_but_ends_no_thread() {
    let hands = ManualClock::new();
    let scheduler = Scheduler::<u32, ()>::builder()
        .name("flaky")
        .workers(2)
        .clock(Flaky(hands.clone(), Arc::default()))
        .start(|_, _| {})
        .expect("valid");
    for key in 0..100 {
        let _ = scheduler.set(key, (), MS).expect("runs");
    }
    hands.advance(MS);
    eventually("all have been called, or were lost to the clock", || {
        let stats = scheduler.stats();
        stats.completed + stats.panicked >= 100 && stats.pending + stats.queued == 0
    });
    assert!(scheduler.stats().completed > 0);
    let stopped = in_time("a stop", move || scheduler.stop(PATIENCE));
    assert_eq!((stopped.running, stopped.pending.len()), (0, 0));
}

/// A key whose hash is another each time.
#[derive(Clone, PartialEq, Eq)]
struct Fickle(u32);

static HASHES: AtomicU64 = AtomicU64::new(0);

impl Hash for Fickle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        HASHES.fetch_add(1, SeqCst).hash(state);
    }
}

#[test]
fn keys_whose_hash_changes_at_each_call_still_run_and_harm_no_others() {
    let (ran, runs) = channel();
    let scheduler = Scheduler::<Fickle, u32>::builder()
        .shards(1)
        .start(move |_, run| {
            let _ = ran.send(run.value);
        })
        .expect("valid");
    for value in 0..2_000 {
        let key = Fickle(value % 50);
        drop(scheduler.set(key.clone(), value, MS * (value % 40)));
        scheduler.move_to(&key, MS);
        scheduler.remove(&Fickle(value % 7));
    }
    eventually("none is pending", || scheduler.is_empty());
    drop(scheduler.set(Fickle(0), 9_999, MS));
    let last = || runs.recv_timeout(PATIENCE).expect("timing goes on");
    while last() != 9_999 {}
    assert!(matches!(
        (scheduler.stop(PATIENCE), scheduler.set(Fickle(1), 1, MS)),
        (_, Err(Error::Stopped))
    ));
}
