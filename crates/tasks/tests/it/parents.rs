//! Parents that a worker holds while their children are there: what happens to everything else
//! meanwhile, and to them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tidewheel_engines::eventually;
use tidewheel_tasks::{Clock, MemoryStore, Rate, StoreError, Task, TaskStore, Worker, wait};

use crate::common::watched::{Watch, Watched};
use crate::common::{MS, engine};

/// Keeps parents that wait for one task, in the queue "parents".
fn parents(store: &impl TaskStore, count: usize, of: &str) {
    let parent = |n| Task::new(format!("parent-{n}"), "").queue("parents");
    let parents = (0..count).map(|n| parent(n).waits_for([of]));
    assert!(wait(store.schedule_many(parents.collect())).is_ok());
}

/// They were held without a slot, and all of them began as soon as their child had ended.
#[test]
fn a_limit_that_is_set_while_parents_wait_counts_for_them() {
    let (clock, store) = engine();
    let begun = Arc::<Mutex<Vec<u64>>>::default();
    let (runs, at) = (Arc::clone(&begun), clock.clone());
    let worker = Worker::builder(Arc::clone(&store)).manual(&clock, move |run| {
        if run.id() != "child" {
            let mut runs = runs.lock().expect("no panic");
            runs.push(at.now().as_secs() / 10);
        }
    });
    let worker = worker.expect("a worker");
    parents(&store, 4, "child");
    assert!(wait(store.schedule(Task::new("child", "").after(MS(20_000)))).is_ok());
    let turns = |count: u64| {
        for _ in 0..count {
            worker.turn();
            clock.advance(MS(50));
        }
    };
    turns(100);
    let rate = Rate::new(1, MS(10_000));
    assert_eq!(wait(store.limit("parents", Some(rate))), Ok(()));
    turns(1300);
    assert_eq!(*begun.lock().expect("no panic"), [2, 3, 4, 5]);
}

/// Those whose turn was asked for did not go back, and began long after the pause.
#[test]
fn a_parent_whose_turn_is_asked_for_goes_back_when_its_queue_is_paused() {
    let (clock, store) = engine();
    let worker = Worker::builder(Arc::clone(&store)).manual(&clock, |_| {});
    let worker = worker.expect("a worker");
    parents(&store, 1, "never-there");
    worker.call();
    worker.run_due();
    assert_eq!(wait(store.pause("parents")), Ok(()));
    clock.advance(MS(1000));
    worker.call();
    worker.turn();
    let stats = worker.stats();
    assert_eq!((stats.ran, stats.released, store.len()), (0, 1, 1));
}

/// Looks that are counted, and may not succeed.
#[derive(Debug, Default)]
struct Looks {
    count: AtomicUsize,
    panics: bool,
    fails: bool,
}

impl Watch for Arc<Looks> {
    fn looks(&self) -> Result<(), StoreError> {
        let first = self.count.fetch_add(1, Relaxed) == 0;
        assert!(!(first && self.panics), "the first look panics");
        if self.fails {
            return Err(StoreError::engine("no looks"));
        }
        Ok(())
    }
}

/// Each was asked for twenty times a second, as fast as the engine could fail.
#[test]
fn parents_are_asked_for_no_more_often_when_looks_fail() {
    let (clock, store) = engine();
    let looks = Arc::new(Looks {
        fails: true,
        ..Looks::default()
    });
    let watched = Watched(Arc::clone(&store), Arc::clone(&looks));
    let worker = Worker::builder(watched).manual(&clock, |_| {});
    let worker = worker.expect("a worker");
    parents(&store, 500, "child");
    for _ in 0..200 {
        worker.turn();
        clock.advance(MS(50));
    }
    let looks = looks.count.load(Relaxed);
    assert!((1000..4000).contains(&looks), "{looks}");
    assert_eq!(worker.stats().errors, looks as u64);
}

/// The thread that asks ended, and the worker kept the leases of its parents for ever.
#[test]
fn a_look_that_panics_ends_no_other() {
    let store = Arc::new(MemoryStore::new());
    let looks = Arc::new(Looks {
        panics: true,
        ..Looks::default()
    });
    parents(&store, 3, "never-there");
    let worker = Worker::builder(Watched(Arc::clone(&store), looks)).start(|_| {});
    let worker = worker.expect("a worker");
    eventually("all have run", || store.is_empty().then_some(()));
    assert_eq!(worker.stop(MS(2000)).left, 0);
}

/// Its parents went back with what it could not begin, and came one by one before anything that was
/// due after them.
#[test]
fn a_worker_whose_handlers_take_long_keeps_its_parents() {
    let store = Arc::new(MemoryStore::new());
    parents(&store, 20, "far");
    for (id, after) in [("far", 3_600_000), ("next", 1500), ("busy", 500)] {
        let task = Task::new(id, "").after(MS(after));
        assert!(wait(store.schedule(task)).is_ok());
    }
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let worker = Worker::builder(Arc::clone(&store)).threads(1);
    let worker = worker.start(move |run| {
        if run.id() == "busy" {
            let _ = gate.lock().map(|gate| gate.recv());
        }
    });
    let worker = worker.expect("a worker");
    eventually("it runs", || (worker.stats().running == 1).then_some(()));
    eventually("what is due goes back", || {
        (worker.stats().released > 0).then_some(())
    });
    assert_eq!(worker.stats().released, 1, "the next one");
    drop(open);
    eventually("the next one has run", || {
        (worker.stats().done == 2).then_some(())
    });
    let stopped = worker.stop(MS(2000));
    assert_eq!((stopped.left, stopped.released), (0, 20));
}

/// From each of them the search went through all that were after it: a hundred chains of a hundred
/// tasks made half a million looks, and the looks for all other parents waited for that.
#[test]
fn each_task_of_a_chain_is_searched_once() {
    let (clock, store) = engine();
    let looks = Arc::<Looks>::default();
    let watched = Watched(Arc::clone(&store), Arc::clone(&looks));
    let worker = Worker::builder(watched).manual(&clock, |_| {});
    let worker = worker.expect("a worker");
    for n in 0..90 {
        let task = Task::new(format!("{n:02}"), "").waits_for([format!("{:02}", n + 1)]);
        assert!(wait(store.schedule(task)).is_ok());
    }
    let last = Task::new("90", "").after(MS(60_000));
    assert!(wait(store.schedule(last)).is_ok());
    for _ in 0..60 {
        worker.turn();
        clock.advance(MS(50));
    }
    let looks = looks.count.load(Relaxed);
    assert!((90..90 * 15).contains(&looks), "{looks}");
}

/// A worker claimed the parents that it had put off, long before they were due. They kept the room
/// of everything else: of four claims, for six seconds.
#[test]
fn parents_that_were_put_off_keep_no_room_until_they_are_due() {
    let (clock, store) = engine();
    let late = Arc::<Mutex<Vec<Duration>>>::default();
    let runs = Arc::clone(&late);
    let worker = Worker::builder(Arc::clone(&store)).held(4);
    let worker = worker.manual(&clock, move |run| {
        runs.lock().expect("no panic").push(run.late());
    });
    let worker = worker.expect("a worker");
    parents(&store, 20, "far");
    let far = Task::new("far", "").after(Duration::from_secs(3600));
    assert!(wait(store.schedule(far)).is_ok());
    for n in 1..6000 {
        if n % 130 == 0 {
            let other = Task::new(format!("other-{n}"), "");
            assert!(wait(store.schedule(other)).is_ok());
        }
        worker.turn();
        clock.advance(MS(20));
    }
    let late = late.lock().expect("no panic");
    let worst = late.iter().max().expect("runs");
    assert!(late.len() == 46 && *worst <= MS(150), "{late:?}");
}
