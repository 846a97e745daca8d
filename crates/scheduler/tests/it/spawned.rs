//! Async handlers: runs that go on as futures.

use std::future::pending;
use std::pin::pin;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use tidewheel_scheduler::{BackPressure, JobFuture, Scheduler};

use crate::common::{MS, PATIENCE, eventually};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread, without a runtime.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park_timeout(PATIENCE);
    }
}

fn on_a_thread(future: JobFuture) {
    drop(thread::spawn(|| block_on(future)));
}

/// The number of runs whose handler has returned, if none of their futures goes on. A future may
/// end before its handler has returned.
fn ended<V: Send + 'static>(scheduler: &Scheduler<u64, V>) -> u64 {
    let stats = scheduler.stats();
    if stats.deferred == 0 {
        stats.completed
    } else {
        0
    }
}

/// Sets tasks of which every third panics, and runs them by `spawn`.
fn every_future_ends(spawn: impl Fn(JobFuture) + Send + Sync + 'static) {
    let (ran, runs) = channel();
    let scheduler = Scheduler::<u64, &str>::builder().workers(1);
    let scheduler = scheduler.start_async(spawn, move |scheduler, run| {
        let ran = ran.clone();
        async move {
            assert!(run.key % 3 != 1, "planned");
            if run.value == "first" {
                scheduler.set(run.key, "second", MS).expect("it runs");
            }
            ran.send((run.key, run.value)).expect("the test lives");
        }
    });
    let scheduler = scheduler.expect("starts");
    for key in 0..30 {
        scheduler.set(key, "first", MS).expect("it runs");
    }
    let next = || runs.recv_timeout(PATIENCE).expect("all that do not panic");
    let mut seen: Vec<_> = (0..40).map(|_| next()).collect();
    seen.sort_unstable();
    let expected = (0..30).filter(|key| key % 3 != 1);
    assert!(
        seen.into_iter()
            .eq(expected.flat_map(|key| [(key, "first"), (key, "second")]))
    );
    eventually("all have ended", || ended(&scheduler) == 50);
    let stats = scheduler.stats();
    assert_eq!(stats.failed, 10);
    assert_eq!((stats.panicked, stats.running), (0, 0));
    assert_eq!(scheduler.stop(PATIENCE).running, 0);
}

#[test]
fn futures_run_without_a_runtime() {
    every_future_ends(on_a_thread);
}

#[test]
fn futures_run_on_tokio() {
    let runtime = tokio::runtime::Runtime::new().expect("starts");
    let handle = runtime.handle().clone();
    every_future_ends(move |future| drop(handle.spawn(future)));
}

/// Futures that end when the test says so, each by one message.
fn gate() -> (impl Fn(), Mutex<Receiver<()>>) {
    let (open, opened) = channel();
    let open = move || open.send(()).expect("somebody waits");
    (open, Mutex::new(opened))
}

#[test]
fn no_more_futures_run_at_the_same_time_than_in_flight_allows() {
    let (open, opened) = gate();
    let opened = Arc::new(opened);
    let scheduler = Scheduler::<u64, ()>::builder().workers(1).in_flight(2);
    let scheduler = scheduler.start_async(on_a_thread, move |_, _| {
        let opened = Arc::clone(&opened);
        async move { opened.lock().expect("no panic").recv().expect("opened") }
    });
    let scheduler = scheduler.expect("starts");
    for key in 0..5 {
        scheduler.set(key, (), Duration::ZERO).expect("it runs");
    }
    for left in (0..5).rev() {
        eventually("as many as may run", || {
            let stats = scheduler.stats();
            (stats.deferred, stats.queued) == ((left + 1).min(2), (left + 1).saturating_sub(2))
        });
        open();
    }
    eventually("all have ended", || ended(&scheduler) == 5);
}

#[test]
fn a_future_that_its_runtime_drops_has_failed() {
    let scheduler = Scheduler::<u64, ()>::builder().workers(1);
    let scheduler = scheduler.start_async(drop, |_, _| pending());
    let scheduler = scheduler.expect("starts");
    scheduler.set(7, (), Duration::ZERO).expect("it runs");
    eventually("it has ended", || ended(&scheduler) == 1);
    assert_eq!(scheduler.stats().failed, 1);
}

#[test]
fn a_stop_waits_for_futures_as_long_as_it_may() {
    let (open, opened) = gate();
    let opened = Arc::new(opened);
    let scheduler = Scheduler::<u64, ()>::builder().workers(1);
    let scheduler = scheduler.start_async(on_a_thread, move |_, _| {
        let opened = Arc::clone(&opened);
        async move { opened.lock().expect("no panic").recv().expect("opened") }
    });
    let scheduler = scheduler.expect("starts");
    scheduler.set(7, (), Duration::ZERO).expect("it runs");
    eventually("it runs", || scheduler.stats().deferred == 1);
    assert_eq!(scheduler.stop(10 * MS).running, 1);
    open();
    assert_eq!(scheduler.stop(PATIENCE).running, 0);
}

/// A future waited for room that only its own end could make.
#[test]
fn an_async_handler_sets_tasks_under_wait() {
    let (ran, runs) = channel();
    // An executor of one thread: what waits there stops everything.
    let (spawned, futures) = channel::<JobFuture>();
    let executor = thread::spawn(move || futures.iter().for_each(block_on));
    let spawn = move |future| spawned.send(future).expect("the executor lives");
    let builder = Scheduler::<u64, ()>::builder().workers(1).queue(2);
    let builder = builder.back_pressure(BackPressure::Wait).in_flight(2);
    let scheduler = builder.start_async(spawn, move |scheduler, run| {
        let ran = ran.clone();
        async move {
            ran.send(run.key).expect("the test lives");
            for next in 0..5 {
                if run.key < 100 {
                    let key = 100 + run.key * 5 + next;
                    scheduler.set(key, (), Duration::ZERO).expect("set");
                }
            }
        }
    });
    let scheduler = scheduler.expect("starts");
    for key in 0..20 {
        scheduler.set(key, (), MS).expect("set");
    }
    for _ in 0..120 {
        runs.recv_timeout(PATIENCE).expect("the executor goes on");
    }
    assert_eq!(scheduler.stop(PATIENCE).running, 0);
    drop(scheduler);
    executor.join().expect("no panic");
}
