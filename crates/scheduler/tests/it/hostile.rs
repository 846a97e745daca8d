//! Keys, values and handlers panic wherever they can: timing goes on, and lost tasks are counted.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::Duration;

use tidewheel_scheduler::{BackPressure, CatchUp, ManualClock, Scheduler};

use crate::common::{Gate, HOUR, MS, PATIENCE, eventually};

/// A value whose copies can be forbidden.
#[derive(Debug)]
struct Uncopied(Arc<AtomicBool>);

impl Clone for Uncopied {
    fn clone(&self) -> Self {
        assert!(!self.0.load(SeqCst), "a copy that panics");
        Self(Arc::clone(&self.0))
    }
}

#[test]
fn a_periodic_task_whose_clone_panics_costs_its_run_and_nothing_else() {
    let (ran, runs) = channel();
    let forbidden = Arc::new(AtomicBool::new(true));
    let scheduler = Scheduler::<u32, Uncopied>::builder()
        .shards(1)
        .start(move |_, run| ran.send(run.key).expect("the test lives"))
        .expect("valid");
    let bad = Uncopied(Arc::clone(&forbidden));
    let _ = scheduler
        .set_periodic(0, bad, Duration::ZERO, MS, CatchUp::Skip)
        .expect("runs");
    eventually("a copy panics", || scheduler.stats().panicked > 2);
    for key in 1..100 {
        let plain = Uncopied(Arc::default());
        let _ = scheduler.set(key, plain, MS).expect("runs");
    }
    let mut others: Vec<u32> = (1..100)
        .map(|_| runs.recv_timeout(PATIENCE).expect("timing goes on"))
        .collect();
    others.sort_unstable();
    assert!(others.into_iter().eq(1..100));
    assert!(scheduler.get(&0).is_some(), "the periodic task goes on");
    forbidden.store(false, SeqCst);
    assert_eq!(runs.recv_timeout(PATIENCE), Ok(0));
    assert!(scheduler.remove(&0).is_some());
}

#[test]
fn a_clone_that_panics_in_every_run_to_make_up_ends() {
    let clock = ManualClock::new();
    let ran = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&ran);
    let scheduler = Scheduler::<u32, Uncopied>::builder()
        .shards(1)
        .manual(&clock, move |_, _| {
            counted.fetch_add(1, SeqCst);
        })
        .expect("valid");
    let bad = Uncopied(Arc::new(AtomicBool::new(true)));
    let _ = scheduler
        .set_periodic(0, bad, MS, MS, CatchUp::Burst(1000))
        .expect("runs");
    for key in 1..300 {
        let plain = Uncopied(Arc::default());
        let _ = scheduler.set(key, plain, 10 * MS).expect("runs");
    }
    clock.advance(500 * MS);
    while scheduler.advance(scheduler.now(), 16).backlog {}
    assert_eq!((ran.load(SeqCst), scheduler.stats().panicked), (299, 500));
    assert_eq!(scheduler.stats().pending, 1);
}

/// A value that panics when it is dropped, armed ones only.
struct Bomb(bool);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.0, "a drop that panics");
    }
}

#[test]
fn a_dropped_task_whose_drop_panics_ends_no_timing() {
    let gate = Arc::new(Gate::default());
    let (ran, runs) = channel();
    let behind_gate = Arc::clone(&gate);
    let scheduler = Scheduler::<u32, Bomb>::builder()
        .workers(1)
        .queue(1)
        .back_pressure(BackPressure::Drop)
        .start(move |_, run| {
            behind_gate.pass();
            ran.send(run.key).expect("the test lives");
        })
        .expect("valid");
    let _ = scheduler.set(0, Bomb(false), Duration::ZERO).expect("runs");
    eventually("a handler runs", || scheduler.stats().running == 1);
    let _ = scheduler.set(1, Bomb(false), Duration::ZERO).expect("runs");
    eventually("a task waits", || scheduler.stats().queued == 1);
    for key in 2..50 {
        let _ = scheduler.set(key, Bomb(true), MS).expect("runs");
    }
    eventually("they are dropped", || scheduler.stats().dropped == 48);
    gate.open();
    assert_eq!(runs.recv_timeout(PATIENCE), Ok(0));
    assert_eq!(runs.recv_timeout(PATIENCE), Ok(1));
    let _ = scheduler.set(50, Bomb(false), MS).expect("runs");
    assert_eq!(runs.recv_timeout(PATIENCE), Ok(50), "timing has ended");
}

#[test]
fn a_handler_whose_panic_panics_when_it_is_dropped_ends_no_worker() {
    let (ran, runs) = channel();
    let scheduler = Scheduler::<u32, ()>::builder()
        .workers(1)
        .start(move |_, run| {
            if run.key < 10 {
                panic_any(Bomb(true));
            }
            ran.send(run.key).expect("the test lives");
        })
        .expect("valid");
    for key in 0..11 {
        let _ = scheduler.set(key, (), MS).expect("runs");
    }
    assert_eq!(runs.recv_timeout(PATIENCE), Ok(10), "the worker has ended");
    eventually("all are counted", || scheduler.stats().panicked == 10);
    assert_eq!(scheduler.stop(PATIENCE).running, 0);
}

/// A key whose drop can panic.
struct BombKey(
    u32,
    #[allow(dead_code, reason = "it is there to be dropped")] Bomb,
);

impl PartialEq for BombKey {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for BombKey {}

impl Hash for BombKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn a_task_set_earlier_by_a_key_whose_drop_panics_is_not_late() {
    let (ran, runs) = channel();
    let scheduler = Scheduler::<BombKey, u32>::builder()
        .start(move |_, run| ran.send(run.value).expect("the test lives"))
        .expect("valid");
    let _ = scheduler
        .set(BombKey(1, Bomb(false)), 1, HOUR)
        .expect("runs");
    let again = catch_unwind(AssertUnwindSafe(|| {
        scheduler.set(BombKey(1, Bomb(true)), 2, MS)
    }));
    assert!(again.is_err(), "the second key is dropped");
    assert_eq!(runs.recv_timeout(PATIENCE), Ok(2), "nobody was woken");
}
