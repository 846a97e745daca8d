//! Runs that go on after their handler: whoever has the acknowledgement ends them.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use tidewheel_engines::eventually;
use tidewheel_tasks::{
    Ack, Ask, ManualClock, ManualWorker, MemoryStore, Outcome, Retry, Task, TaskStore, Worker, wait,
};

use crate::common::{MS, engine};

type Held = Arc<Mutex<Vec<Ack>>>;

/// A worker whose handler takes the acknowledgement and returns an error, which does not matter.
fn passing_on(
    clock: &ManualClock,
    store: &Arc<MemoryStore>,
) -> (ManualWorker<Arc<MemoryStore>>, Held) {
    let held = Held::default();
    let holds = Arc::clone(&held);
    let retry = Retry::default().base(MS(50)).jitter(0.0);
    let worker = Worker::builder(Arc::clone(store)).retry(retry);
    let worker = worker.manual(clock, move |run| {
        holds.lock().expect("no panic").push(run.ack());
        Err::<(), _>("ignored")
    });
    (worker.expect("a worker"), held)
}

fn take(held: &Held) -> Ack {
    held.lock().expect("no panic").pop().expect("it is held")
}

/// A second passes.
fn pass(clock: &ManualClock, worker: &ManualWorker<Arc<MemoryStore>>) {
    for _ in 0..20 {
        worker.turn();
        clock.advance(MS(50));
    }
}

#[test]
fn a_run_goes_on_until_it_is_acknowledged_and_fails_when_the_ack_is_dropped() {
    let (clock, store) = engine();
    let (worker, held) = passing_on(&clock, &store);
    wait(store.schedule(Task::new("a", ""))).expect("kept");
    worker.turn();
    assert_eq!((worker.stats().running, worker.stats().ran), (1, 1));
    // Its lease is extended, so nobody else gets it.
    for _ in 0..40 {
        clock.advance(MS(1000));
        worker.turn();
    }
    let ask = || Ask::new("other", MS(0), MS(1000), 9);
    assert_eq!(wait(store.claim(ask())), Ok(vec![]));
    drop(take(&held));
    worker.turn();
    let stats = worker.stats();
    assert_eq!((stats.running, stats.retried, stats.panicked), (0, 1, 1));
    pass(&clock, &worker);
    take(&held).settle(Err::<(), _>("busy"));
    pass(&clock, &worker);
    take(&held).done();
    worker.turn();
    let stats = worker.stats();
    assert_eq!((stats.ran, stats.retried, stats.done), (3, 2, 1));
    assert!(store.is_empty());
}

#[test]
fn an_ack_that_outlives_its_worker_ends_nothing() {
    let (clock, store) = engine();
    let (worker, held) = passing_on(&clock, &store);
    wait(store.schedule(Task::new("a", ""))).expect("kept");
    worker.turn();
    drop(worker);
    take(&held).done();
    assert_eq!(store.len(), 1);
    clock.advance(MS(9000));
    let (worker, held) = passing_on(&clock, &store);
    worker.turn();
    take(&held).done();
    worker.turn();
    assert!(store.is_empty());
}

#[test]
fn a_second_acknowledgement_of_one_run_panics_and_the_run_has_failed() {
    let (clock, store) = engine();
    let worker = Worker::builder(Arc::clone(&store)).manual(&clock, |run| {
        let _first = run.ack();
        let _second = run.ack();
    });
    let worker = worker.expect("a worker");
    wait(store.schedule(Task::new("a", ""))).expect("kept");
    worker.turn();
    let stats = worker.stats();
    assert_eq!((stats.running, stats.retried), (0, 1));
}

#[test]
fn a_panic_of_a_handler_is_the_error_of_its_letter() {
    let (clock, store) = engine();
    let worker = Worker::builder(Arc::clone(&store)).retry(Retry::never());
    let worker = worker.manual(&clock, |run| {
        assert!(run.payload().is_empty(), "no address");
    });
    let worker = worker.expect("a worker");
    wait(store.schedule(Task::new("a", "x"))).expect("kept");
    worker.turn();
    let letters = wait(store.dead_letters(9)).expect("letters");
    assert_eq!(letters[0].error, "panicked: no address");
}

/// Runs that had been passed on counted as threads that were busy, and what was due went back to
/// the engine.
#[test]
fn a_run_that_was_passed_on_keeps_no_thread() {
    let store = Arc::new(MemoryStore::new());
    let (told, acks) = mpsc::channel();
    let worker = Worker::builder(Arc::clone(&store)).threads(1);
    let worker = worker.start(move |run| {
        let _ = told.send(run.ack());
    });
    let worker = worker.expect("a worker");
    let task = |n: u64| Task::new(format!("{n}"), "").after(MS(20 * n));
    wait(store.schedule_many((0..20).map(task).collect())).expect("kept");
    let held: Vec<Ack> = acks.iter().take(20).collect();
    assert_eq!((worker.stats().running, worker.stats().released), (20, 0));
    // On other threads, as a runtime does.
    let threads = held.into_iter().map(|ack| thread::spawn(|| ack.done()));
    let threads: Vec<_> = threads.collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("no panic"));
    eventually("all have ended", || store.is_empty().then_some(()));
    assert_eq!(worker.stop(Duration::from_secs(5)).left, 0);
}

#[test]
fn a_stop_waits_for_acknowledgements_no_longer_than_its_limit() {
    let store = Arc::new(MemoryStore::new());
    let (told, acks) = mpsc::channel();
    let worker = Worker::builder(Arc::clone(&store)).threads(1);
    let worker = worker.start(move |run| {
        let _ = told.send(run.ack());
    });
    let worker = worker.expect("a worker");
    wait(store.schedule(Task::new("a", ""))).expect("kept");
    let ack = acks.recv().expect("it runs");
    assert_eq!(worker.stop(MS(50)).left, 1);
    ack.settle(Outcome::Done);
    assert_eq!(store.len(), 1, "its lease ends by itself");
}

#[test]
fn an_async_handler_may_pass_its_run_on() {
    let (clock, store) = engine();
    let (told, acks) = mpsc::channel();
    let worker = Worker::builder(Arc::clone(&store)).clock(clock);
    // What is spawned is run to its end at once.
    let worker = worker.start_async(wait, move |run| {
        let _ = told.send(run.ack());
        async { Err::<(), _>("ignored") }
    });
    let worker = worker.expect("a worker");
    wait(store.schedule(Task::new("a", ""))).expect("kept");
    acks.recv().expect("it runs").done();
    eventually("it has ended", || store.is_empty().then_some(()));
    assert_eq!(worker.stats().retried, 0);
    drop(worker);
}
