//! Parents that a worker holds while their children are there: what happens to everything else
//! meanwhile, and to them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, SystemTime};

use tidewheel_engines::eventually;
use tidewheel_tasks::{
    Ask, Clock, MemoryStore, Outcome, Rate, Retry, StoreError, SystemClock, Task, TaskStore,
    Worker, wait,
};

use crate::common::watched::{Watch, Watched};
use crate::common::{EPOCH, MS, engine};
use crate::worker::{Ran, names, noting, schedule};

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

/// Looks that are counted, and may not succeed; and calls that extend leases.
#[derive(Debug, Default)]
struct Looks {
    count: AtomicUsize,
    extended: AtomicUsize,
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

    fn extends(&self) {
        self.extended.fetch_add(1, Relaxed);
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

/// Tasks that waited for one another never ended.
#[test]
fn a_circle_of_waits_ends_with_a_dead_letter_that_names_it() {
    let (clock, store) = engine();
    let ran = Ran::default();
    let worker = Worker::builder(Arc::clone(&store)).manual(&clock, noting(&ran));
    let worker = worker.expect("a worker");
    let waits = |id: &str, of: &str| schedule(&store, Task::new(id, "").waits_for([of]));
    // Each of them is scheduled alone. What waits for the circle is not in it.
    waits("before", "a");
    waits("a", "b");
    waits("b", "c");
    schedule(&store, Task::new("c", "").needs(["slow", "a"]));
    schedule(&store, Task::new("slow", "").after(Duration::from_secs(9)));
    for _ in 0..400 {
        worker.turn();
        clock.advance(MS(50));
    }
    let letters = wait(store.dead_letters(9)).expect("letters");
    let errors: Vec<_> = letters.iter().map(|letter| &*letter.error).collect();
    let circle = "tasks wait for one another in a circle: a, b, c";
    assert_eq!(errors, [circle, "a is dead, which it needs"], "{letters:?}");
    assert!(store.is_empty(), "{letters:?}");
    assert!(
        names(&ran).contains(&"before1".to_owned()),
        "{:?}",
        names(&ran)
    );
}

/// All of them became dead letters when they had begun to wait at the same time: each saw the
/// circle before the end of another was kept.
#[test]
fn of_a_circle_of_waits_one_task_ends_and_the_others_go_on() {
    let store = Arc::new(MemoryStore::new());
    let ran = Ran::default();
    for (id, of) in [("c", "a"), ("a", "b"), ("b", "c")] {
        schedule(&store, Task::new(id, "").waits_for([of]));
    }
    let worker = Worker::builder(Arc::clone(&store)).start(noting(&ran));
    let worker = worker.expect("a worker");
    eventually("all have ended", || store.is_empty().then_some(()));
    let letters = wait(store.dead_letters(9)).expect("letters");
    let dead: Vec<_> = letters.iter().map(|letter| &*letter.id).collect();
    assert_eq!(
        (dead, names(&ran)),
        (vec!["a"], vec!["c1".into(), "b1".into()])
    );
    assert_eq!(worker.stop(MS(2000)).left, 0);
}

/// A circle was not seen if more than ten others had ended before the next one in it, nor one of
/// more than twelve tasks.
#[test]
fn a_large_circle_of_waits_is_seen_behind_what_has_ended() {
    let (clock, store) = engine();
    let worker = Worker::builder(Arc::clone(&store)).manual(&clock, |_| {});
    let worker = worker.expect("a worker");
    for n in 0..100 {
        let ended = (0..30).map(|n| format!("ended-{n}"));
        let of = ended.chain([format!("{:02}", (n + 1) % 100)]);
        schedule(&store, Task::new(format!("{n:02}"), "").waits_for(of));
    }
    for _ in 0..60 {
        worker.turn();
        clock.advance(MS(50));
    }
    let letters = wait(store.dead_letters(9)).expect("letters");
    let [letter] = &letters[..] else {
        panic!("{letters:?}");
    };
    assert!(
        letter.error.ends_with(", 10, 11 and 88 more"),
        "{}",
        letter.error
    );
    assert!(store.len() < 99, "others go on");
}

/// An engine that is far away.
struct SlowLooks;

impl Watch for SlowLooks {
    fn looks(&self) -> Result<(), StoreError> {
        std::thread::sleep(MS(20));
        Ok(())
    }
}

/// The looks at its children kept the thread that others were due on, and the worker claimed
/// nothing meanwhile.
#[test]
fn a_parent_whose_turn_is_asked_for_keeps_no_thread_from_others() {
    let store = Arc::new(MemoryStore::new());
    let children = (0..50).map(|n| format!("ended-{n}"));
    schedule(&store, Task::new("parent", "").waits_for(children));
    schedule(&store, Task::new("held", "").after(MS(300)));
    let late = Arc::<Mutex<Vec<(String, Duration)>>>::default();
    let runs = Arc::clone(&late);
    let builder = Worker::builder(Arc::new(Watched(Arc::clone(&store), SlowLooks)));
    let worker = builder.threads(1).start(move |run| {
        let mut runs = runs.lock().expect("no panic");
        runs.push((run.id().to_owned(), run.late()));
    });
    let worker = worker.expect("a worker");
    std::thread::sleep(MS(400));
    schedule(&store, Task::new("new", ""));
    eventually("all have run", || store.is_empty().then_some(()));
    let runs = late.lock().expect("no panic");
    let order: Vec<_> = runs.iter().map(|(id, _)| &**id).collect();
    assert_eq!(order, ["held", "new", "parent"], "{runs:?}");
    assert!(
        runs[..2].iter().all(|(_, late)| *late < MS(400)),
        "{runs:?}"
    );
    drop(worker);
}

/// What it was about to ask for goes back with everything else, after the one call under way.
#[test]
fn a_worker_that_stops_gives_back_the_parents_whose_turn_is_asked_for() {
    let store = Arc::new(MemoryStore::new());
    for n in 0..30 {
        let children = (0..20).map(|n| format!("ended-{n}"));
        schedule(&store, Task::new(format!("{n}"), "").waits_for(children));
    }
    let ran = Ran::default();
    let builder = Worker::builder(Arc::new(Watched(Arc::clone(&store), SlowLooks)));
    let worker = builder.threads(1).start(noting(&ran)).expect("a worker");
    eventually("all are held", || (worker.stats().held == 30).then_some(()));
    std::thread::sleep(MS(50));
    let clock = SystemClock::new();
    let stopped = worker.stop(MS(5000));
    assert_eq!((stopped.left, stopped.released), (0, 30));
    assert!(clock.now() < MS(1000), "{:?}", clock.now());
    let claims = wait(store.claim(Ask::new("other", MS(0), MS(1000), 99)));
    assert_eq!(claims.map(|claims| claims.len()), Ok(30));
    assert_eq!(names(&ran), [""; 0]);
}

/// It was put off by an eighth of the time that it had waited, up to half a minute.
#[test]
fn a_parent_begins_within_a_second_of_its_last_child() {
    let (clock, store) = engine();
    let late = Arc::<Mutex<Vec<(String, Duration)>>>::default();
    let runs = Arc::clone(&late);
    let worker = Worker::builder(Arc::clone(&store)).manual(&clock, move |run| {
        let mut runs = runs.lock().expect("no panic");
        runs.push((run.id().to_owned(), run.late()));
    });
    let worker = worker.expect("a worker");
    let child = Task::new("child", "").after(Duration::from_secs(600));
    assert!(wait(store.batch(Task::new("parent", ""), vec![child])).is_ok());
    schedule(&store, Task::new("cancelled", "").waits_for(["child"]));
    for _ in 0..1200 {
        worker.turn();
        clock.advance(MS(499));
    }
    assert_eq!(worker.stats().held, 3, "all wait");
    assert_eq!(wait(store.cancel("cancelled")), Ok(true));
    for _ in 0..160 {
        worker.turn();
        clock.advance(MS(10));
    }
    worker.turn();
    assert_eq!((worker.stats().held, store.len()), (0, 0));
    let runs = late.lock().expect("no panic");
    let [(child, _), (parent, late)] = &runs[..] else {
        panic!("{runs:?}");
    };
    assert_eq!((&**child, &**parent), ("child", "parent"));
    assert!(*late <= MS(1010), "{late:?}");
}

/// Each parent was looked for again at the end of each child.
#[test]
fn parents_of_the_same_children_are_looked_for_when_the_last_has_ended() {
    const PARENTS: usize = 100;
    let (clock, store) = engine();
    let looks = Arc::<Looks>::default();
    let watched = Watched(Arc::clone(&store), Arc::clone(&looks));
    let late = Arc::<Mutex<Vec<Duration>>>::default();
    let (runs, at) = (Arc::clone(&late), clock.clone());
    let worker = Worker::builder(watched).manual(&clock, move |run| {
        if run.id().starts_with("parent") {
            runs.lock().expect("no panic").push(at.now());
        }
    });
    let worker = worker.expect("a worker");
    let children = |count: u64| (0..count).map(|n| format!("{n:02}"));
    let child = |id: String| {
        let after = MS(300 + 10 * id.parse::<u64>().expect("a number"));
        Task::new(id, "").after(after)
    };
    assert!(wait(store.schedule_many(children(20).map(child).collect())).is_ok());
    for n in 0..PARENTS {
        let parent = Task::new(format!("parent-{n}"), "");
        schedule(&store, parent.waits_for(children(20)));
    }
    // This worker knows of its claim, and learns of its end by looks.
    schedule(&store, Task::new("far", "").after(MS(5000)));
    let last = Task::new("parent-last", "").waits_for(["00", "far"]);
    schedule(&store, last);
    let turns = |count: u64| {
        for _ in 0..count {
            worker.turn();
            clock.advance(MS(10));
        }
    };
    turns(60);
    assert_eq!(late.lock().expect("no panic").len(), PARENTS);
    assert!(
        late.lock()
            .expect("no panic")
            .iter()
            .all(|at| *at <= MS(510))
    );
    // One at the start for each parent, and now and then one; at the end one for each child.
    let (looks, extended) = (looks.count.load(Relaxed), looks.extended.load(Relaxed));
    assert!(looks < PARENTS * 5, "{looks}");
    // One that asks about all of them when their turn has come; it was one for each.
    assert!(extended < 10, "{extended}");
    assert_eq!(wait(store.cancel("far")), Ok(true));
    turns(101);
    assert_eq!(late.lock().expect("no panic").len(), PARENTS + 1);
}

/// What a look has shown counts only for what waited then.
#[test]
fn a_child_that_comes_again_is_waited_for_by_the_parent_that_comes_with_it() {
    let (clock, store) = engine();
    let begun = Arc::<Mutex<Vec<String>>>::default();
    let runs = Arc::clone(&begun);
    let worker = Worker::builder(Arc::clone(&store)).manual(&clock, move |run| {
        runs.lock().expect("no panic").push(run.id().to_owned());
    });
    let worker = worker.expect("a worker");
    for round in 0..3 {
        schedule(&store, Task::new("child", "").after(MS(2000)));
        parents(&store, 2, "child");
        for _ in 0..400 {
            worker.turn();
            clock.advance(MS(10));
        }
        let begun = std::mem::take(&mut *begun.lock().expect("no panic"));
        assert_eq!(begun.len(), 3, "{round}: {begun:?}");
        assert_eq!(begun[0], "child", "{round}");
    }
}

/// Each layer of a chain waited for the pause of all parents: 4 ms for each of them.
#[test]
fn a_chain_of_many_parents_makes_no_pause_at_a_child_that_its_worker_has_ended() {
    const WIDTH: usize = 500;
    let (clock, store) = engine();
    let looks = Arc::<Looks>::default();
    let watched = Watched(Arc::clone(&store), Arc::clone(&looks));
    let builder = Worker::builder(watched).retry(Retry::default().attempts(1));
    let worker = builder.manual(&clock, |run| match run.id() {
        "3-7" => Outcome::failed("no"),
        _ => Outcome::Done,
    });
    let worker = worker.expect("a worker");
    let of = |layer, n| Task::new(format!("{layer}-{n}"), "");
    let first = (0..WIDTH).map(|n| of(0, n).after(MS(2500)));
    let parent = |layer, n| of(layer, n).needs([format!("{}-{n}", layer - 1)]);
    let parents = (1..6).flat_map(|layer| (0..WIDTH).map(move |n| parent(layer, n)));
    assert!(wait(store.schedule_many(first.chain(parents).collect())).is_ok());
    let turns = |count: u64| {
        for _ in 0..count {
            worker.turn();
            clock.advance(MS(50));
        }
    };
    turns(50);
    assert_eq!((worker.stats().ran, worker.stats().held), (0, 6 * WIDTH));
    let before = looks.count.load(Relaxed);
    turns(12);
    assert!(store.is_empty(), "{:?}", worker.stats());
    let letters = wait(store.dead_letters(9)).expect("letters");
    let dead: Vec<_> = letters.iter().map(|letter| &*letter.id).collect();
    assert_eq!(dead, ["3-7", "4-7", "5-7"]);
    let looks = looks.count.load(Relaxed) - before;
    assert!(looks < 7 * WIDTH, "{looks}");
}

/// Each step of such a chain was put off by an eighth of the time that the whole had taken.
#[test]
fn a_chain_in_a_limited_queue_runs_as_fast_as_the_limit_lets() {
    const STEPS: usize = 40;
    let (clock, store) = engine();
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let worker = Worker::builder(Arc::clone(&store)).manual(&clock, move |_| {
        count.fetch_add(1, Relaxed);
    });
    let worker = worker.expect("a worker");
    let limit = store.limit("limited", Some(Rate::new(10, MS(1000))));
    assert_eq!(wait(limit), Ok(()));
    let steps = (0..STEPS).map(|n| {
        let task = Task::new(format!("{n}"), "").queue("limited");
        match n {
            0 => task.after(MS(500)),
            _ => task.waits_for([format!("{}", n - 1)]),
        }
    });
    assert!(wait(store.schedule_many(steps.collect())).is_ok());
    for _ in 0..200 {
        worker.turn();
        clock.advance(MS(50));
    }
    // Ten seconds: before, six of them had run by then.
    assert_eq!((ran.load(Relaxed), store.len()), (STEPS, 0));
}

#[test]
fn what_waits_for_others_takes_no_slot_from_the_rest_of_its_queue() {
    let (clock, store) = engine();
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let worker = Worker::builder(Arc::clone(&store)).manual(&clock, move |_| {
        count.fetch_add(1, Relaxed);
    });
    let worker = worker.expect("a worker");
    let limit = store.limit("parents", Some(Rate::new(10, MS(1000))));
    assert_eq!(wait(limit), Ok(()));
    parents(&store, 200, "never-ends");
    schedule(&store, Task::new("never-ends", "").after(MS(1_000_000)));
    for n in 0..50 {
        let other = Task::new(format!("other-{n}"), "").after(MS(1000));
        schedule(&store, other.queue("parents"));
    }
    // Eight seconds. 250 slots would be 25.
    for _ in 0..160 {
        worker.turn();
        clock.advance(MS(50));
    }
    assert_eq!((ran.load(Relaxed), store.len()), (50, 201));
}

/// Parents that came first had the first slots. They freed them, and their children kept the later
/// ones, which they had got in the same question: each began up to a lookahead too late.
#[test]
fn a_slot_that_a_parent_frees_is_for_what_has_a_later_one() {
    let (clock, store) = engine();
    let begun = Arc::<Mutex<Vec<(String, u64)>>>::default();
    let (runs, at) = (Arc::clone(&begun), clock.clone());
    let worker = Worker::builder(Arc::clone(&store)).manual(&clock, move |run| {
        let mut runs = runs.lock().expect("no panic");
        runs.push((run.id().to_owned(), at.now().as_secs() / 4));
    });
    let worker = worker.expect("a worker");
    let limit = store.limit("limited", Some(Rate::new(1, MS(4000))));
    assert_eq!(wait(limit), Ok(()));
    for id in ["a", "b"] {
        let waits = Task::new(id, "").waits_for(["child"]);
        schedule(&store, waits.queue("limited"));
    }
    schedule(&store, Task::new("child", "").queue("limited"));
    for _ in 0..250 {
        worker.turn();
        clock.advance(MS(50));
    }
    let begun = begun.lock().expect("no panic");
    let expected = [("child", 0), ("a", 1), ("b", 2)];
    assert_eq!(*begun, expected.map(|(id, period)| (id.to_owned(), period)));
}

/// A parent that was claimed before it was due, with a slot after that, had it until then.
#[test]
fn a_parent_frees_its_slot_when_it_is_due_and_not_at_the_slot() {
    let (clock, store) = engine();
    let worker = Worker::builder(Arc::clone(&store)).manual(&clock, |_| {});
    let worker = worker.expect("a worker");
    let limit = store.limit("limited", Some(Rate::new(1, MS(4000))));
    assert_eq!(wait(limit), Ok(()));
    schedule(&store, Task::new("first", "").queue("limited"));
    let parent = Task::new("parent", "").waits_for(["far"]).queue("limited");
    schedule(&store, parent.after(MS(1000)));
    let far = Task::new("far", "").after(Duration::from_secs(3600));
    schedule(&store, far);
    for _ in 0..30 {
        worker.turn();
        clock.advance(MS(50));
    }
    assert_eq!((worker.stats().held, store.len()), (1, 2));
    schedule(&store, Task::new("next", "").queue("limited"));
    let claims = wait(store.claim(Ask::new("other", MS(10_000), MS(1000), 9)));
    let dues = claims.map(|claims| claims.iter().map(|claim| claim.due).collect::<Vec<_>>());
    assert_eq!(
        dues,
        Ok(vec![(SystemTime::UNIX_EPOCH + EPOCH + MS(4000)).into()])
    );
}

/// Its slot was spent: the next task began a period later.
#[test]
fn the_slot_of_a_claim_that_was_cancelled_is_for_another_task() {
    let (clock, store) = engine();
    let ran = Ran::default();
    let worker = Worker::builder(Arc::clone(&store)).manual(&clock, noting(&ran));
    let worker = worker.expect("a worker");
    let limit = store.limit("limited", Some(Rate::new(1, Duration::from_secs(3600))));
    assert_eq!(wait(limit), Ok(()));
    let limited = |id| Task::new(id, "").queue("limited");
    schedule(&store, limited("first").after(MS(6000)));
    worker.turn();
    assert_eq!(worker.stats().held, 1);
    schedule(&store, limited("next"));
    assert_eq!(wait(store.cancel("first")), Ok(true));
    for _ in 0..120 {
        worker.turn();
        clock.advance(MS(50));
    }
    assert_eq!(names(&ran), ["next1"]);
}

/// Parents take half of the room at most, and no slot of a limited queue for later.
#[test]
fn what_waits_for_others_leaves_room_and_keeps_a_limit() {
    let (clock, store) = engine();
    let begun = Arc::<Mutex<Vec<(String, u64)>>>::default();
    let (runs, at) = (Arc::clone(&begun), clock.clone());
    let builder = Worker::builder(Arc::clone(&store))
        .held(4)
        .lookahead(MS(100));
    let worker = builder.manual(&clock, move |run| {
        let mut runs = runs.lock().expect("no panic");
        runs.push((run.id().to_owned(), at.now().as_secs() / 10));
    });
    let worker = worker.expect("a worker");
    assert_eq!(
        wait(store.limit("limited", Some(Rate::new(1, MS(10_000))))),
        Ok(())
    );
    for n in 0..10 {
        schedule(&store, Task::new(format!("{n}"), "").waits_for(["child"]));
    }
    for n in 0..2 {
        let waits = Task::new(format!("limited-{n}"), "").waits_for(["child"]);
        schedule(&store, waits.queue("limited"));
    }
    schedule(&store, Task::new("other", "").after(MS(5000)));
    schedule(&store, Task::new("child", "").after(MS(25_000)));
    let turns = |count: u64| {
        for _ in 0..count {
            worker.turn();
            clock.advance(MS(50));
        }
    };
    turns(120);
    assert_eq!(begun.lock().expect("no panic").len(), 1, "the other one");
    turns(1000);
    let begun = begun.lock().expect("no panic");
    assert_eq!((begun.len(), store.len()), (14, 0), "{begun:?}");
    let limited = begun.iter().filter(|(id, _)| id.starts_with("limited"));
    let periods: Vec<_> = limited.map(|(_, period)| *period).collect();
    assert!(periods[0] >= 2 && periods[0] != periods[1], "{begun:?}");
}

#[test]
fn a_worker_that_drains_gives_back_what_waits_for_others() {
    let store = Arc::new(MemoryStore::new());
    let far = Task::new("far", "").after(Duration::from_secs(3600));
    assert!(wait(store.batch(Task::new("parent", ""), vec![far])).is_ok());
    let ran = Ran::default();
    let worker = Worker::builder(Arc::clone(&store)).start(noting(&ran));
    let worker = worker.expect("a worker");
    eventually("it is held", || (worker.stats().held == 1).then_some(()));
    std::thread::sleep(MS(100));
    let clock = SystemClock::new();
    let stopped = worker.drain(Duration::from_secs(20));
    assert_eq!((stopped.left, stopped.released), (0, 1));
    assert!(clock.now() < MS(5000), "{:?}", clock.now());
    assert_eq!((names(&ran).len(), store.len()), (0, 2));
}

#[test]
fn a_parent_runs_when_its_children_have_ended() {
    let (clock, store) = engine();
    let ran = Ran::default();
    let note = noting(&ran);
    let builder = Worker::builder(Arc::clone(&store)).retry(Retry::default().attempts(1));
    let worker = builder.manual(&clock, move |run| {
        note(run);
        match run.id() {
            "dies" => Outcome::failed("no"),
            _ => Outcome::Done,
        }
    });
    let worker = worker.expect("a worker");
    let turns = |count: u64| {
        for _ in 0..count {
            worker.turn();
            clock.advance(MS(50));
        }
    };
    let children = || {
        ["a", "dies", "c\nd"]
            .map(|id| Task::new(id, "").after(MS(900)))
            .to_vec()
    };
    let parent = Task::new("parent", "");
    assert_eq!(
        wait(store.batch(parent, children())).map(|dues| dues.len()),
        Ok(4)
    );
    turns(16);
    assert_eq!(names(&ran), [""; 0]);
    turns(20);
    let so_far = std::mem::take(&mut *ran.lock().expect("no panic"));
    assert_eq!(
        (so_far.len(), so_far.last()),
        (4, Some(&("parent".to_owned(), 1)))
    );
    assert_eq!(wait(store.remove_dead("dies")), Ok(true));
    // It needs all of them, and one is dead.
    let parent = Task::new("parent", "").needs(["a", "dies", "c\nd"]);
    assert!(wait(store.batch(parent, children())).is_ok());
    turns(36);
    assert_eq!(names(&ran).len(), 3);
    let letters = wait(store.dead_letters(9)).expect("letters");
    let ids: Vec<_> = letters.iter().map(|letter| &*letter.id).collect();
    assert_eq!(ids, ["dies", "parent"]);
    let periodic = vec![Task::new("tick", "").every(MS(1000))];
    assert!(wait(store.batch(Task::new("parent", ""), periodic)).is_err());
    let many = (0..101).map(|n| Task::new(format!("{n}"), ""));
    assert!(wait(store.batch(Task::new("parent", ""), many.collect())).is_err());
    assert!(store.is_empty());
}
