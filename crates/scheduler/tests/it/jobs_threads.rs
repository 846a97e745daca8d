//! Durable jobs on real threads and runtimes: any owner of an `Ack` ends a run, and a stop waits
//! for it.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use tidewheel_scheduler::{
    Ack, BackPressure, Durable, DurableBuilder, DurableHandle, JobFuture, MemoryJournal, Retry,
    Scheduler, Serial,
};

use crate::common::memory;
use crate::common::{Gate, HOUR, MS, PATIENCE, eventually};

type Builder = DurableBuilder<u32, (), memory::MemoryJournal<u32, ()>>;

fn builder(journal: &memory::MemoryJournal<u32, ()>) -> Builder {
    let builder = Scheduler::builder().workers(2).durable(journal.clone());
    builder.retry(Retry::default().base(5 * MS).cap(20 * MS))
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread, without a runtime.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park_timeout(PATIENCE);
    }
}

/// Jobs that fail in every way before they succeed, on one way to run futures.
fn every_job_ends(spawn: impl Fn(JobFuture) + Send + Sync + 'static) {
    let journal = memory::MemoryJournal::empty();
    let jobs = builder(&journal)
        .start_async(spawn, |_, run| async move {
            assert!(run.attempt != 1 || run.key % 3 != 1, "planned");
            if run.attempt == 1 && run.key % 3 == 2 {
                return Err("planned");
            }
            Ok(())
        })
        .expect("starts");
    for key in 0..60 {
        jobs.set(key, (), MS).expect("on disk");
    }
    eventually("all are over", || journal.live().is_empty());
    let stats = jobs.stats();
    assert_eq!((stats.failed, stats.retried, stats.dead), (40, 40, 0));
    assert_eq!(jobs.stop(PATIENCE).running, 0);
}

#[test]
fn what_a_passed_on_run_sets_does_not_wait_for_room_that_only_its_end_makes() {
    let builder = Scheduler::<u64, ()>::builder().workers(1).queue(2);
    let builder = builder.back_pressure(BackPressure::Wait);
    let builder = builder.durable(MemoryJournal::new()).in_flight(1);
    let (ended, ends) = channel();
    let jobs = builder.start(move |jobs, run| {
        let (ack, jobs, ended) = (run.ack(), jobs.clone(), ended.clone());
        thread::spawn(move || {
            // Until the queue is full.
            thread::sleep(MS);
            jobs.set(run.key + 1000, (), HOUR).expect("kept");
            ack.done();
            ended.send(run.key).expect("the test listens");
        });
    });
    let jobs = jobs.expect("starts");
    jobs.set_many((0..20).map(|key| (key, (), 20 * MS)))
        .expect("kept");
    for _ in 0..20 {
        ends.recv_timeout(PATIENCE).expect("all runs end");
    }
    assert_eq!(jobs.len(), 20);
}

#[test]
fn async_jobs_run_on_a_tokio_of_one_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.build().expect("starts");
    let handle = runtime.handle().clone();
    let (over, is_over) = tokio::sync::oneshot::channel();
    let running = thread::spawn(move || drop(runtime.block_on(is_over)));
    every_job_ends(move |future| drop(handle.spawn(future)));
    over.send(()).expect("it runs");
    running.join().expect("no panic");
}

#[test]
fn async_jobs_run_on_a_tokio_of_many_threads() {
    let runtime = tokio::runtime::Runtime::new().expect("starts");
    let handle = runtime.handle().clone();
    every_job_ends(move |future| drop(handle.spawn(future)));
}

#[test]
fn async_jobs_run_without_a_runtime() {
    every_job_ends(|future| drop(thread::spawn(|| block_on(future))));
}

#[test]
fn a_job_whose_runtime_is_shut_down_is_tried_again() {
    let runtime = tokio::runtime::Runtime::new().expect("starts");
    let handle = runtime.handle().clone();
    let journal = memory::MemoryJournal::empty();
    let (began, begins) = channel();
    let jobs = builder(&journal)
        .start_async(
            move |future| drop(handle.spawn(future)),
            move |_, _| {
                let began = began.clone();
                async move {
                    began.send(()).expect("the test lives");
                    std::future::pending::<()>().await;
                }
            },
        )
        .expect("starts");
    jobs.set(1, (), Duration::ZERO).expect("on disk");
    begins.recv_timeout(PATIENCE).expect("it runs");
    runtime.shutdown_background();
    eventually("it has failed", || jobs.stats().retried > 0);
    jobs.stop(PATIENCE);
    assert_eq!(journal.live().len(), 1);
}

#[test]
fn an_executor_that_acknowledges_waits_neither_for_the_journal_nor_for_a_key() {
    let acks: Arc<Mutex<Vec<Ack>>> = Arc::default();
    let (gate, held) = (Arc::new(Gate::default()), Arc::clone(&acks));
    let behind_gate = Arc::clone(&gate);
    let (blocks, is_blocked) = channel();
    let jobs = Scheduler::<u32, ()>::builder()
        .workers(1)
        .durable(MemoryJournal::new());
    let jobs = jobs.start(move |_, run| {
        if run.key == 0 {
            held.lock().expect("unpoisoned").push(run.ack());
        } else {
            // The only worker.
            blocks.send(()).expect("the test lives");
            behind_gate.pass();
        }
    });
    let jobs = jobs.expect("starts");
    jobs.set(0, (), Duration::ZERO).expect("kept");
    eventually("it is deferred", || jobs.stats().deferred == 1);
    jobs.set(1, (), Duration::ZERO).expect("kept");
    is_blocked.recv_timeout(PATIENCE).expect("it runs");
    let (done, is_done) = sync_channel(1);
    let ack = acks.lock().expect("unpoisoned").pop().expect("held");
    thread::spawn(move || {
        ack.done();
        done.send(()).expect("the test lives");
    });
    is_done
        .recv_timeout(PATIENCE)
        .expect("it waits for a worker");
    gate.open();
    eventually("the end is written", || jobs.stats().deferred == 0);
    assert_eq!(jobs.stop(PATIENCE).running, 0);
}

#[test]
fn a_stop_waits_for_acknowledgements_no_longer_than_its_limit() {
    let acks: Arc<Mutex<Vec<Ack>>> = Arc::default();
    let held = Arc::clone(&acks);
    let journal = MemoryJournal::new();
    let builder = Scheduler::<Serial, ()>::builder().workers(2);
    let jobs = builder
        .durable(journal.clone())
        .in_flight(2)
        .start(move |_, run| {
            held.lock().expect("unpoisoned").push(run.ack());
        });
    let jobs = Arc::new(jobs.expect("starts"));
    for _ in 0..5 {
        jobs.add((), Duration::ZERO).expect("kept");
    }
    eventually("two run", || {
        jobs.stats().deferred == 2 && jobs.stats().queued == 3
    });
    let stopped = jobs.stop(20 * MS);
    assert_eq!((stopped.running, stopped.pending.len()), (2, 3));
    // What begins after the stop is over is the next start's.
    acks.lock()
        .expect("unpoisoned")
        .drain(..)
        .for_each(Ack::done);
    eventually("both have ended", || jobs.stats().deferred == 0);
    drop(jobs);
    let jobs = Durable::start(Scheduler::builder(), journal, |_, _| {}).expect("starts");
    eventually("the others run", || jobs.stats().completed == 3);
}

#[test]
fn workers_take_no_more_jobs_than_may_be_unfinished_and_go_on_when_runs_end() {
    let (most, now) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (at_most, at_once) = (Arc::clone(&most), Arc::clone(&now));
    let builder = Scheduler::<Serial, ()>::builder().workers(4);
    let jobs = builder
        .durable(MemoryJournal::new())
        .in_flight(5)
        .start(move |_, run| {
            let running = at_once.fetch_add(1, SeqCst) + 1;
            at_most.fetch_max(running, SeqCst);
            let (ack, at_once) = (run.ack(), Arc::clone(&at_once));
            thread::spawn(move || {
                thread::yield_now();
                at_once.fetch_sub(1, SeqCst);
                ack.done();
            });
        });
    let jobs = jobs.expect("starts");
    for _ in 0..500 {
        jobs.add((), Duration::ZERO).expect("kept");
    }
    eventually("all are over", || {
        jobs.stats().completed == 500 && jobs.stats().deferred == 0
    });
    assert!(most.load(SeqCst) <= 5, "{}", most.load(SeqCst));
    assert_eq!(now.load(SeqCst), 0);
}

#[test]
fn handlers_that_panic_lose_nothing_while_threads_set_the_same_keys() {
    let journal = memory::MemoryJournal::empty();
    let jobs = builder(&journal).start(|_, run| {
        assert!(run.token % 3 != 0, "planned");
        if run.token % 5 == 0 {
            Err("planned")
        } else {
            Ok(())
        }
    });
    let jobs = jobs.expect("starts");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..300u32 {
                    jobs.set(round % 3, (), (round % 4) * MS).expect("on disk");
                }
            });
        }
    });
    eventually("all are over", || {
        jobs.is_empty() && jobs.stats().running == 0
    });
    eventually("nothing is left", || journal.live().is_empty());
    assert_eq!(jobs.stats().dead, 0);
    assert!(jobs.set(1, (), HOUR).expect("on disk").is_none());
}

/// Options under which the workers are soon all waiting for somebody to end a run.
fn crowded() -> DurableBuilder<u32, (), MemoryJournal<u32, ()>> {
    let builder = Scheduler::builder().workers(1).queue(2);
    let builder = builder.back_pressure(BackPressure::Wait);
    builder.durable(MemoryJournal::new()).in_flight(2)
}

#[test]
fn a_thread_that_holds_an_ack_sets_a_job_under_wait() {
    // The program's own handle: that of a handler never waits.
    let own = Arc::new(OnceLock::<DurableHandle<u32, (), _>>::new());
    let (ran, runs) = channel();
    let of_handler = Arc::clone(&own);
    let jobs = crowded().start(move |_, run| {
        ran.send(run.key).expect("the test lives");
        let (ack, own) = (run.ack(), Arc::clone(&of_handler));
        thread::spawn(move || {
            thread::sleep(5 * MS);
            let jobs = own.get().expect("set");
            if run.key < 100 {
                jobs.set(run.key + 100, (), Duration::ZERO).expect("set");
            }
            ack.done();
        });
    });
    let jobs = jobs.expect("starts");
    assert!(own.set(jobs.handle()).is_ok());
    let all = (0..20).map(|key| (key, (), MS));
    assert!(jobs.set_many(all).is_ok());
    for _ in 0..40 {
        runs.recv_timeout(PATIENCE).expect("the workers go on");
    }
    assert_eq!(jobs.stop(PATIENCE).running, 0);
}

#[test]
fn an_async_handler_sets_jobs_under_wait() {
    let (ran, runs) = channel();
    // An executor of one thread: what waits there stops everything.
    let (spawned, futures) = channel::<JobFuture>();
    let executor = thread::spawn(move || futures.iter().for_each(block_on));
    let spawn = move |future| spawned.send(future).expect("the executor lives");
    let jobs = crowded().start_async(spawn, move |jobs, run| {
        let ran = ran.clone();
        async move {
            ran.send(run.key).expect("the test lives");
            for next in 0..5 {
                if run.key < 100 {
                    let key = 100 + run.key * 5 + next;
                    jobs.set(key, (), Duration::ZERO).expect("set");
                }
            }
        }
    });
    let jobs = jobs.expect("starts");
    assert!(jobs.set_many((0..20).map(|key| (key, (), MS))).is_ok());
    for _ in 0..120 {
        runs.recv_timeout(PATIENCE).expect("the executor goes on");
    }
    assert_eq!(jobs.stop(PATIENCE).running, 0);
    drop(jobs);
    executor.join().expect("no panic");
}
