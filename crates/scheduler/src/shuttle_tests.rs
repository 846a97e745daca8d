//! These tests run set, move, remove and stop against firing, under schedules that shuttle chooses:
//! `RUSTFLAGS="--cfg shuttle" cargo test -p tidewheel-scheduler --features shuttle --lib
//! --release`.
//!
//! Every test runs under random schedules and under PCT's; a failure prints the schedule, which
//! replays it.

use std::sync::Arc;

use shuttle::thread;
use tidewheel_time::Alarm;

use crate::core::tasks::Due;
use crate::drive::queue::Queue;
use crate::drive::shards::Shards;

const RANDOM_RUNS: usize = 5000;
const PCT_RUNS: usize = 5000;
/// Ordering constraints that a PCT run looks for.
const PCT_DEPTH: usize = 3;

const KEY: u64 = 7;

type Tasks = Shards<u64, u64, foldhash::quality::FixedState>;

fn check(test: fn()) {
    shuttle::check_random(test, RANDOM_RUNS);
    shuttle::check_pct(test, PCT_RUNS, PCT_DEPTH);
}

/// One shard with one task that is due at 10.
fn one_task() -> Arc<Tasks> {
    let tasks = Arc::new(Shards::new(1, foldhash::quality::FixedState::default()));
    set(&tasks, 1, 10);
    tasks
}

fn set(tasks: &Tasks, value: u64, deadline: u64) -> Option<u64> {
    let mut held = tasks.of(&KEY);
    let old = held.state.tasks.set(KEY, value, deadline, 0);
    held.publish();
    old
}

fn fire(tasks: &Tasks, now: u64) -> Vec<u64> {
    let mut batch = Vec::new();
    while tasks.is_due(0, now) {
        tasks.advance(0, now, 8, &mut batch);
    }
    batch.into_iter().map(|due| due.value).collect()
}

fn spawn<T: Send + 'static>(
    tasks: &Arc<Tasks>,
    body: impl FnOnce(&Tasks) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let tasks = Arc::clone(tasks);
    thread::spawn(move || body(&tasks))
}

#[test]
fn a_task_is_either_removed_or_run() {
    check(|| {
        let tasks = one_task();
        let firing = spawn(&tasks, |tasks| fire(tasks, 10));
        let removing = spawn(&tasks, |tasks| tasks.of(&KEY).state.tasks.remove(&KEY));
        let mut ends = firing.join().expect("no panic");
        ends.extend(removing.join().expect("no panic"));
        assert_eq!(ends, [1]);
    });
}

#[test]
fn a_moved_task_runs_once_at_the_new_time() {
    check(|| {
        let tasks = one_task();
        let firing = spawn(&tasks, |tasks| fire(tasks, 10));
        let moving = spawn(&tasks, |tasks| {
            let mut held = tasks.of(&KEY);
            let moved = held.state.tasks.move_to(&KEY, 20, 0);
            held.publish();
            moved
        });
        let early = firing.join().expect("no panic").len();
        let moved = moving.join().expect("no panic");
        assert_eq!(early, usize::from(!moved));
        assert_eq!(fire(&tasks, 19).len(), 0);
        assert_eq!(fire(&tasks, 20).len(), usize::from(moved));
    });
}

#[test]
fn a_set_replaces_a_pending_task_or_is_a_new_one() {
    check(|| {
        let tasks = one_task();
        let firing = spawn(&tasks, |tasks| fire(tasks, 10));
        let setting = spawn(&tasks, |tasks| set(tasks, 2, 10));
        let mut ends = firing.join().expect("no panic");
        let replaced = setting.join().expect("no panic");
        ends.extend(fire(&tasks, 10));
        match replaced {
            Some(old) => assert_eq!((old, ends), (1, vec![2])),
            None => assert_eq!(ends, [1, 2]),
        }
    });
}

#[test]
fn a_sleeper_sees_the_earlier_deadline_or_is_woken() {
    check(|| {
        let tasks = one_task();
        let alarm = Arc::new(Alarm::new());
        let sleeper = {
            let (tasks, alarm) = (Arc::clone(&tasks), Arc::clone(&alarm));
            thread::spawn(move || {
                let until = tasks.next();
                (until, alarm.fall_asleep(until, || tasks.next()))
            })
        };
        let waker = spawn(&tasks, move |tasks| {
            let mut held = tasks.of(&KEY);
            held.state.tasks.set(KEY, 2, 5, 0);
            held.publish().is_some_and(|next| alarm.lowered(next))
        });
        let (until, slept) = sleeper.join().expect("no panic");
        let woken = waker.join().expect("no panic");
        assert!(until <= 5 || !slept || woken, "it sleeps past a deadline");
    });
}

#[test]
fn a_timing_thread_that_found_no_room_is_told_when_there_is() {
    check(|| {
        let queue = Arc::new(Queue::new(1, 8));
        let due = Due {
            key: KEY,
            value: 1,
            deadline: 0,
            missed: 0,
            recall: crate::core::routine::Recall::default(),
        };
        queue.push(&mut vec![due]);
        let worker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let (_, wake_timing) = queue.take().expect("a task waits");
                queue.done();
                wake_timing
            })
        };
        let starved = queue.room() == 0;
        let told = worker.join().expect("no panic");
        assert_eq!(starved, told);
    });
}

#[test]
fn a_setter_that_waits_for_room_goes_on_when_a_worker_takes_or_the_queue_closes() {
    check(|| {
        let queue = Arc::new(Queue::new(1, 8));
        let due = |value| Due {
            key: KEY,
            value,
            deadline: 0,
            missed: 0,
            recall: crate::core::routine::Recall::default(),
        };
        queue.push(&mut vec![due(1)]);
        let waiting = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.wait_for_room())
        };
        let worker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let mut taken = 0;
                while queue.take().is_some() {
                    queue.done();
                    taken += 1;
                }
                taken
            })
        };
        waiting.join().expect("no panic");
        queue.push(&mut vec![due(2)]);
        queue.close();
        let taken = worker.join().expect("no panic");
        assert_eq!(taken, 2);
    });
}

fn due(value: u64) -> Due<u64, u64> {
    Due {
        key: KEY,
        value,
        deadline: 0,
        missed: 0,
        recall: crate::core::routine::Recall::default(),
    }
}

#[test]
fn a_worker_that_found_too_many_unfinished_runs_goes_on_when_one_ends() {
    check(|| {
        let queue = Arc::new(Queue::new(8, 1));
        queue.push(&mut vec![due(1), due(2)]);
        let (passed, runs) = std::sync::mpsc::channel();
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let (queue, passed) = (Arc::clone(&queue), passed.clone());
                thread::spawn(move || {
                    while queue.take().is_some() {
                        queue.defer();
                        passed.send(()).expect("received");
                        queue.done();
                    }
                })
            })
            .collect();
        drop(passed);
        let mut ended = 0;
        while ended < 2 {
            // A runtime that ends futures, as soon as there is one.
            if runs.try_recv().is_ok() {
                queue.ended();
                ended += 1;
            } else {
                thread::yield_now();
            }
        }
        queue.close();
        for worker in workers {
            worker.join().expect("no panic");
        }
        assert_eq!(queue.load(), (0, 0, 0));
    });
}
