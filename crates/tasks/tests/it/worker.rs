//! A worker in virtual time, and one with threads.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tidewheel_engines::eventually;
use tidewheel_tasks::{
    Around, Claim, Due, ManualWorker, MemoryStore, Outcome, Retry, Task, TaskStore, Worker, wait,
};

use crate::common::watched::{NEVER, Watched};
use crate::common::{MS, engine, shares_what_is_due};

/// The runs: id and attempt.
pub(crate) type Ran = Arc<Mutex<Vec<(String, u32)>>>;

pub(crate) fn schedule(store: &Arc<MemoryStore>, task: Task) {
    wait(store.schedule(task)).expect("scheduled");
}

pub(crate) fn names(ran: &Ran) -> Vec<String> {
    let ran = ran.lock().expect("no panic");
    ran.iter()
        .map(|(id, attempt)| format!("{id}{attempt}"))
        .collect()
}

pub(crate) fn noting(ran: &Ran) -> impl Fn(&tidewheel_tasks::Run) + Send + Sync + 'static {
    let ran = Arc::clone(ran);
    move |run| {
        let row = (run.id().to_owned(), run.attempt());
        ran.lock().expect("no panic").push(row);
    }
}

#[test]
fn a_task_runs_at_its_millisecond_and_is_gone() {
    let (clock, store) = engine();
    let ran = Ran::default();
    let worker = Worker::builder(Arc::clone(&store))
        .manual(&clock, noting(&ran))
        .expect("a worker");
    schedule(&store, Task::new("a", "").after(MS(700)));
    for _ in 0..699 {
        worker.turn();
        clock.advance(MS(1));
        worker.turn();
        assert_eq!(names(&ran), [""; 0]);
    }
    // The bound of the engine's time is a bit lower than the time.
    for _ in 0..2 {
        clock.advance(MS(1));
        worker.turn();
    }
    assert_eq!(names(&ran), ["a1"]);
    assert!(store.is_empty());
    let stats = worker.stats();
    assert_eq!(
        (stats.claimed, stats.ran, stats.done, stats.held),
        (1, 1, 1, 0)
    );
    assert!(stats.lateness.max <= MS(1));
}

#[test]
fn an_engine_that_is_away_delays_nothing_that_was_claimed() {
    let (clock, store) = engine();
    let ran = Ran::default();
    let worker = Worker::builder(Arc::clone(&store))
        .manual(&clock, noting(&ran))
        .expect("a worker");
    schedule(&store, Task::new("a", "").after(MS(4000)));
    worker.turn();
    store.set_down(true);
    for _ in 0..400 {
        clock.advance(MS(10));
        worker.turn();
    }
    // A bound that is four seconds old is lowered by less than a millisecond.
    clock.advance(MS(1));
    worker.turn();
    assert_eq!(names(&ran), ["a1"]);
    assert_eq!((worker.stats().done, store.len()), (0, 1));
    assert!(worker.stats().errors > 3);
    store.set_down(false);
    clock.advance(MS(1000));
    worker.turn();
    assert_eq!((worker.stats().done, store.len()), (1, 0));
}

#[test]
fn a_claim_that_another_may_have_run_waits_for_the_engines_word() {
    let (clock, store) = engine();
    let ran = Ran::default();
    let unsure = Watched(Arc::clone(&store), |claim: &mut Claim| claim.sure = MS(500));
    let worker = Worker::builder(unsure)
        .manual(&clock, noting(&ran))
        .expect("a worker");
    schedule(&store, Task::new("a", "").after(MS(2000)));
    worker.turn();
    store.set_down(true);
    for _ in 0..300 {
        clock.advance(MS(10));
        worker.turn();
    }
    assert_eq!(names(&ran), [""; 0]);
    store.set_down(false);
    for _ in 0..30 {
        clock.advance(MS(10));
        worker.turn();
    }
    assert_eq!(names(&ran), ["a1"]);
    assert!(store.is_empty());
}

#[test]
fn a_claim_from_before_an_interruption_is_asked_about_before_it_runs() {
    for (interrupted, runs) in [(false, 1), (true, 0)] {
        let (clock, store) = engine();
        let ran = Ran::default();
        let before = Watched(Arc::clone(&store), move |claim: &mut Claim| {
            claim.interruptions += u64::from(interrupted);
        });
        let worker = Worker::builder(before).manual(&clock, noting(&ran));
        let worker = worker.expect("a worker");
        schedule(&store, Task::new("a", "").after(MS(1000)));
        schedule(&store, Task::new("b", "").after(MS(1000)));
        worker.turn();
        // As if somebody else had it.
        assert_eq!(wait(store.cancel("a")), Ok(true));
        clock.advance(MS(1001));
        worker.turn();
        let stats = worker.stats();
        assert_eq!(
            (names(&ran).len(), stats.recalled),
            (1 + runs, 1 - runs as u64)
        );
        assert!(
            names(&ran).contains(&"b1".to_owned()),
            "it is still its own"
        );
    }
}

#[test]
fn failures_and_panics_are_tried_again_and_then_dead() {
    let (clock, store) = engine();
    let ran = Ran::default();
    let note = noting(&ran);
    let retry = Retry::default().attempts(3).base(MS(100)).jitter(0.0);
    let worker = Worker::builder(Arc::clone(&store)).retry(retry);
    let worker = worker
        .manual(&clock, move |run| -> Result<Outcome, &str> {
            note(run);
            match (run.id(), run.attempt()) {
                ("panics", 1) => panic!("in a handler"),
                ("panics", _) => Ok(Outcome::Done),
                ("gives up", _) => Ok(Outcome::dead("no")),
                _ => Err("busy"),
            }
        })
        .expect("a worker");
    for id in ["panics", "fails", "gives up"] {
        schedule(&store, Task::new(id, ""));
    }
    for _ in 0..200 {
        worker.turn();
        clock.advance(MS(5));
    }
    let mut ran = names(&ran);
    ran.sort();
    assert_eq!(
        ran,
        [
            "fails1",
            "fails2",
            "fails3",
            "gives up1",
            "panics1",
            "panics2"
        ]
    );
    let letters = wait(store.dead_letters(9)).expect("letters");
    let letters: Vec<_> = letters
        .iter()
        .map(|letter| (&*letter.id, letter.attempts, &*letter.error))
        .collect();
    assert_eq!(letters, [("fails", 3, "busy"), ("gives up", 1, "no")]);
    let stats = worker.stats();
    assert_eq!(
        (stats.retried, stats.dead, stats.panicked, stats.done),
        (3, 2, 1, 1)
    );
    assert!(store.is_empty());
}

#[test]
fn a_worker_that_slept_past_its_lease_runs_nothing_and_ends_nothing() {
    let (clock, store) = engine();
    let ran = Ran::default();
    let worker = |lease| -> ManualWorker<_> {
        let builder = Worker::builder(Arc::clone(&store)).lease(lease);
        builder.manual(&clock, noting(&ran)).expect("a worker")
    };
    let (first, second) = (worker(MS(3000)), worker(MS(3000)));
    schedule(&store, Task::new("a", "").after(MS(5000)));
    first.turn();
    clock.advance(MS(4000));
    second.turn();
    clock.advance(MS(2000));
    // The first wakes up.
    first.run_due();
    assert_eq!(names(&ran), [""; 0]);
    assert_eq!(first.stats().lapsed, 1);
    second.turn();
    first.turn();
    assert_eq!(names(&ran), ["a1"]);
    assert!(store.is_empty());
}

#[test]
fn a_zombies_end_is_refused() {
    let (clock, store) = engine();
    let (stuck, clock_of) = (Arc::new(AtomicBool::new(true)), clock.clone());
    let (zombie, other) = (Arc::clone(&stuck), Arc::clone(&store));
    let taker = Worker::builder(other).lease(MS(3000));
    let taker = taker.manual(&clock, |_| ()).expect("a worker");
    let first = Worker::builder(Arc::clone(&store)).lease(MS(3000));
    let first = first.manual(&clock, move |_| {
        if zombie.swap(false, SeqCst) {
            // It is stopped while it runs. Meanwhile another takes the task and runs it.
            clock_of.advance(MS(3100));
            taker.turn();
            assert_eq!(taker.stats().done, 1);
        }
    });
    let first = first.expect("a worker");
    schedule(&store, Task::new("a", ""));
    first.turn();
    let stats = first.stats();
    assert_eq!((stats.ran, stats.done, stats.refused), (1, 0, 1));
    assert!(store.is_empty());
}

#[test]
fn a_slow_run_keeps_its_claim() {
    let (clock, store) = engine();
    let ran = Ran::default();
    let worker = |ran: &Ran| {
        Worker::builder(Arc::clone(&store))
            .lease(MS(1000))
            .manual(&clock, noting(ran))
    };
    let (first, second) = (
        worker(&ran).expect("a worker"),
        worker(&ran).expect("a worker"),
    );
    // Held for five seconds, of which each lease lasts one.
    schedule(&store, Task::new("a", "").after(MS(5000)));
    for _ in 0..101 {
        first.turn();
        second.turn();
        clock.advance(MS(50));
    }
    assert_eq!(names(&ran), ["a1"]);
    let claimed = first.stats().claimed + second.stats().claimed;
    assert_eq!((claimed, first.stats().lapsed), (1, 0));
    assert!(first.stats().extended > 5);
}

#[test]
fn what_is_cancelled_after_its_claim_is_dropped() {
    let (clock, store) = engine();
    for strict in [false, true] {
        let ran = Ran::default();
        let worker = Worker::builder(Arc::clone(&store)).strict(strict);
        let worker = worker.manual(&clock, noting(&ran)).expect("a worker");
        schedule(&store, Task::new("a", "").after(MS(6000)));
        worker.turn();
        // Without `strict`, the worker learns of it when it extends the lease.
        clock.advance(MS(if strict { 0 } else { 2500 }));
        assert_eq!(wait(store.cancel("a")), Ok(true));
        clock.advance(MS(400));
        if !strict {
            worker.call();
        }
        clock.advance(MS(5600));
        if strict {
            // It has slept since.
            worker.run_due();
        }
        worker.turn();
        assert_eq!(names(&ran), [""; 0], "{strict}");
    }
}

#[test]
fn what_is_held_goes_back_when_a_worker_stops() {
    let (clock, store) = engine();
    let ran = Ran::default();
    let worker = || {
        Worker::builder(Arc::clone(&store))
            .manual(&clock, noting(&ran))
            .expect("a worker")
    };
    let (first, second) = (worker(), worker());
    schedule(&store, Task::new("a", "").after(MS(300)));
    first.turn();
    first.stop();
    assert_eq!((first.stats().released, first.stats().held), (1, 0));
    second.turn();
    clock.advance(MS(301));
    second.turn();
    assert_eq!(names(&ran), ["a1"]);
}

#[test]
fn a_worker_claims_from_its_queues_only() {
    let (clock, store) = engine();
    let ran = Ran::default();
    let worker = |queues: &[&str]| {
        let builder = Worker::builder(Arc::clone(&store)).queues(queues.iter().copied());
        builder.manual(&clock, noting(&ran))
    };
    assert!(worker(&["a\nb"]).is_err());
    let (mails, all) = (worker(&["mails", ""]), worker(&[]));
    for queue in ["", "mails", "reports"] {
        schedule(&store, Task::new(format!("in {queue}"), "").queue(queue));
    }
    mails.expect("a worker").turn();
    let mut so_far = names(&ran);
    so_far.sort();
    assert_eq!(so_far, ["in 1", "in mails1"]);
    all.expect("a worker").turn();
    assert_eq!(names(&ran).pop().as_deref(), Some("in reports1"));
}

#[test]
fn what_is_held_of_a_queue_that_is_paused_goes_back_and_what_runs_goes_on() {
    let store = Arc::new(MemoryStore::new());
    let (open, gate) = mpsc::channel::<()>();
    let (gate, ran) = (Mutex::new(gate), Ran::default());
    let note = noting(&ran);
    let worker = Worker::builder(Arc::clone(&store)).threads(2).poll(MS(20));
    let worker = worker.start(move |run| {
        note(run);
        let _ = gate.lock().map(|gate| gate.recv());
    });
    let worker = worker.expect("a worker");
    schedule(&store, Task::new("runs", "").queue("mails"));
    for (id, queue) in [("held", "mails"), ("other", "")] {
        schedule(&store, Task::new(id, "").queue(queue).after(MS(2000)));
    }
    eventually("one runs and two are held", || {
        let stats = worker.stats();
        (stats.running == 1 && stats.held == 3).then_some(())
    });
    assert_eq!(wait(store.pause("mails")), Ok(()));
    eventually("one goes back", || {
        (worker.stats().released == 1).then_some(())
    });
    drop(open);
    eventually("the others run", || {
        (worker.stats().done == 2).then_some(())
    });
    let mut so_far = names(&ran);
    so_far.sort();
    assert_eq!(so_far, ["other1", "runs1"]);
    assert_eq!(wait(store.resume("mails")), Ok(()));
    eventually("all have run", || store.is_empty().then_some(()));
    let _ = worker.stop(MS(2000));
}

#[test]
fn a_worker_holds_no_more_than_it_may() {
    let (clock, store) = engine();
    let ran = Ran::default();
    let worker = Worker::builder(Arc::clone(&store)).held(3);
    let worker = worker.manual(&clock, noting(&ran)).expect("a worker");
    for n in 0..10 {
        schedule(&store, Task::new(format!("{n}"), "").after(MS(100 + n)));
    }
    worker.turn();
    assert_eq!(worker.stats().held, 3);
    for _ in 0..30 {
        clock.advance(MS(10));
        worker.turn();
        assert!(worker.stats().held <= 3);
    }
    assert_eq!(worker.stats().ran, 10);
}

#[test]
fn a_periodic_task_runs_on_whoever_dies() {
    let (clock, store) = engine();
    let ran = Ran::default();
    schedule(
        &store,
        Task::new("tick", "").after(MS(1000)).every(MS(1000)),
    );
    for _ in 0..5 {
        let builder = Worker::builder(Arc::clone(&store))
            .lease(MS(400))
            .lookahead(MS(100));
        let worker = builder.manual(&clock, noting(&ran)).expect("a worker");
        for _ in 0..40 {
            clock.advance(MS(50));
            worker.turn();
        }
        // It dies with what it holds.
    }
    // The tenth is due when the last of them has died.
    assert_eq!(names(&ran).len(), 9);
}

#[test]
fn threads_run_tasks_and_stop_gives_back() {
    let store = Arc::new(MemoryStore::new());
    let (ran, runs) = mpsc::channel();
    let worker = Worker::builder(Arc::clone(&store)).threads(2);
    let worker = worker.start(move |run| {
        let _ = ran.send(run.id().to_owned());
    });
    let worker = worker.expect("threads");
    schedule(&store, Task::new("later", "").after(Duration::from_secs(9)));
    for n in 0..100 {
        schedule(&store, Task::new(format!("{n}"), "").after(MS(n)));
    }
    assert_eq!(runs.iter().take(100).count(), 100);
    assert_eq!(
        wait(store.reschedule("later", Due::After(Duration::from_secs(8)))),
        Ok(true)
    );
    let stopped = worker.stop(Duration::from_secs(5));
    assert_eq!(stopped.left, 0);
    assert_eq!(store.len(), 1);
}

#[test]
fn an_async_run_that_is_dropped_is_tried_again() {
    let store = Arc::new(MemoryStore::new());
    let (ran, runs) = mpsc::channel();
    let retry = Retry::default().base(MS(1));
    let drops = Arc::new(AtomicBool::new(true));
    let spawn = move |run| {
        if drops.swap(false, SeqCst) {
            drop::<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>(run);
        } else {
            std::thread::spawn(move || wait(run));
        }
    };
    let worker = Worker::builder(Arc::clone(&store)).retry(retry);
    let worker = worker.start_async(spawn, move |run| {
        let ran = ran.clone();
        async move {
            let _ = ran.send(run.attempt());
        }
    });
    let worker = worker.expect("threads");
    schedule(&store, Task::new("a", ""));
    assert_eq!(runs.recv(), Ok(2));
    let stopped = worker.stop(Duration::from_secs(5));
    assert_eq!((stopped.left, store.len()), (0, 0));
}

#[test]
fn what_is_late_leaves_a_thread_for_what_is_on_time() {
    let store = Arc::new(MemoryStore::new());
    let past = wait(store.now()).expect("the time").minus(MS(500));
    for n in 0..40 {
        schedule(&store, Task::new(format!("late-{n}"), "").at(past));
    }
    for n in 0..6 {
        let due = MS(300 + n * 50);
        schedule(&store, Task::new(format!("{n}"), "").after(due));
    }
    let (told, lates) = mpsc::channel();
    let worker = Worker::builder(Arc::clone(&store)).threads(2);
    let worker = worker.start(move |run| {
        if !run.id().starts_with("late") {
            let _ = told.send(run.late());
        }
        std::thread::sleep(MS(30));
    });
    let worker = worker.expect("a worker");
    let mut late: Vec<_> = lates.iter().take(6).collect();
    late.sort();
    // Behind another one it would be 15 ms late at the median.
    assert!(late[2] < MS(10), "{late:?}");
    let _ = worker.stop(MS(2000));
}

#[test]
fn an_end_that_the_engine_never_takes_holds_up_no_other() {
    let (clock, store) = engine();
    let ran = Ran::default();
    let note = noting(&ran);
    let picky = Watched(Arc::clone(&store), |_: &mut Claim| ());
    let worker = Worker::builder(picky).manual(&clock, move |run| {
        note(run);
        if run.id().starts_with("poison") {
            Outcome::failed(NEVER)
        } else {
            Outcome::Done
        }
    });
    let worker = worker.expect("a worker");
    for n in 0..5 {
        schedule(&store, Task::new(format!("poison{n}"), ""));
    }
    for n in 0..20 {
        schedule(&store, Task::new(format!("{n}"), ""));
        for _ in 0..10 {
            worker.turn();
            clock.advance(MS(10));
        }
    }
    let stats = worker.stats();
    assert_eq!((stats.done, store.len()), (20, 5), "{stats:?}");
}

#[test]
fn a_question_that_is_never_asked_again_is_no_panic() {
    let (clock, store) = engine();
    let ran = Ran::default();
    let worker = Worker::builder(Arc::clone(&store)).poll(Duration::MAX);
    let worker = worker.lookahead(Duration::MAX).lease(Duration::MAX);
    let worker = worker.limit(Duration::MAX).manual(&clock, noting(&ran));
    let worker = worker.expect("a worker");
    schedule(&store, Task::new("a", ""));
    worker.turn();
    worker.turn();
    assert_eq!(names(&ran), ["a1"]);
}

/// They were a second late: a worker kept what it had claimed until then.
#[test]
fn what_a_worker_in_long_handlers_holds_runs_in_time_on_an_idle_one() {
    let store = Arc::new(MemoryStore::new());
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let stuck = Worker::builder(Arc::clone(&store)).threads(2);
    let stuck = stuck.start(move |_| {
        let _ = gate.lock().map(|gate| gate.recv());
    });
    let stuck = stuck.expect("a worker");
    for n in 0..2 {
        schedule(&store, Task::new(format!("long-{n}"), ""));
    }
    for n in 0..100 {
        schedule(
            &store,
            Task::new(format!("{n}"), "").after(MS(1500 + n * 10)),
        );
    }
    eventually("it holds all of them", || {
        (stuck.stats().claimed == 102 && stuck.stats().running == 2).then_some(())
    });
    let (told, lates) = mpsc::channel();
    let idle = Worker::builder(Arc::clone(&store)).threads(2);
    let idle = idle.start(move |run| {
        let _ = told.send(run.late());
    });
    let idle = idle.expect("a worker");
    let latest = lates.iter().take(100).max();
    assert!(latest < Some(MS(900)), "{latest:?}");
    assert_eq!(stuck.stats().running, 2);
    drop(open);
    let (stuck, idle) = (stuck.stop(MS(2000)), idle.stop(MS(2000)));
    assert_eq!((stuck.left, idle.left, store.len()), (0, 0, 0));
}

#[test]
fn an_idle_worker_gets_what_a_busy_one_cannot_begin() {
    let store = Arc::new(MemoryStore::new());
    shares_what_is_due(&[Arc::clone(&store), Arc::clone(&store)]);
    assert!(store.is_empty());
}

/// Runs a worker of two threads until its test has seen what it waits for.
fn with_worker(
    store: &Arc<MemoryStore>,
    handler: impl Fn(&tidewheel_tasks::Run) + Send + Sync + 'static,
    test: impl FnOnce(),
) {
    let worker = Worker::builder(Arc::clone(store)).threads(2).lease(MS(100));
    let worker = worker.start(handler).expect("a worker");
    test();
    assert_eq!(worker.stop(Duration::from_secs(5)).left, 0);
}

#[test]
fn a_handler_learns_that_its_task_was_cancelled() {
    let store = Arc::new(MemoryStore::new());
    let (told, heard) = mpsc::channel();
    let handler = move |run: &tidewheel_tasks::Run| {
        let _ = told.send(run.cancelled());
        wait(run.until_cancelled());
        let _ = told.send(run.cancelled());
    };
    with_worker(&store, handler, || {
        schedule(&store, Task::new("long", ""));
        assert_eq!(heard.recv(), Ok(false));
        assert_eq!(wait(store.cancel("long")), Ok(true));
        assert_eq!(heard.recv(), Ok(true));
    });
}

#[test]
fn a_handler_tells_its_progress_and_leaves_a_result() {
    let store = Arc::new(MemoryStore::new());
    let (go, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let handler = move |run: &tidewheel_tasks::Run| {
        for step in 0..100u32 {
            run.progress(step.to_string()).expect("short");
        }
        assert!(run.progress(vec![0; 100_001]).is_err());
        let _ = gate.lock().map(|gate| gate.recv());
        run.progress("the end").expect("short");
        run.keep("7").expect("short");
    };
    with_worker(&store, handler, || {
        let task = Task::new("counts", "").keep_result(Duration::from_secs(60));
        schedule(&store, task);
        let look = || wait(store.look("counts")).expect("answered");
        eventually("the last progress is there", || {
            (look()?.progress.as_deref() == Some(b"99")).then_some(())
        });
        drop(go);
        eventually("the result is there", || {
            (look()?.result.as_deref() == Some(b"7")).then_some(())
        });
    });
}

/// Notes what it sees under its name, and ends runs whose id is its name.
struct Seen(&'static str, Arc<Mutex<Vec<String>>>);

impl Seen {
    fn note(&self, what: String) {
        self.1.lock().expect("no panic").push(what);
    }
}

impl Around for Seen {
    fn before(&self, run: &tidewheel_tasks::Run) -> Option<Outcome> {
        self.note(format!("{} before {}", self.0, run.id()));
        assert!(run.id() != "panics" || self.0 != "b", "before");
        (run.id() == self.0).then(|| Outcome::dead("refused"))
    }

    fn after(&self, claim: &Claim, outcome: Outcome) -> Outcome {
        self.note(format!("{} after {} {outcome:?}", self.0, claim.id));
        match claim.id.as_str() {
            "fails" if self.0 == "b" => Outcome::Done,
            _ => outcome,
        }
    }
}

#[test]
fn what_is_around_a_run_is_called_in_order_and_may_end_it() {
    let (clock, store) = engine();
    let (ran, seen) = (Ran::default(), Arc::<Mutex<Vec<String>>>::default());
    let note = noting(&ran);
    let builder = Worker::builder(Arc::clone(&store))
        .around(Seen("a", Arc::clone(&seen)))
        .around(Seen("b", Arc::clone(&seen)))
        .retry(Retry::default().attempts(1));
    let worker = builder.manual(&clock, move |run| {
        note(run);
        match run.id() {
            "fails" => Outcome::failed("busy"),
            _ => Outcome::Done,
        }
    });
    let worker = worker.expect("a worker");
    let run = |id: &str| {
        schedule(&store, Task::new(id, ""));
        worker.turn();
        std::mem::take(&mut *seen.lock().expect("no panic")).join(", ")
    };
    assert_eq!(
        run("x"),
        "a before x, b before x, b after x Done, a after x Done"
    );
    let fails = run("fails");
    assert!(fails.ends_with("a after fails Done"), "{fails}");
    assert_eq!(wait(store.dead_letters(9)).expect("letters"), []);
    let early = run("b");
    assert!(
        early.starts_with("a before b, b before b, a after b Dead"),
        "{early}"
    );
    assert_eq!(run("a"), "a before a");
    let panics = run("panics");
    assert!(panics.contains("a after panics Failed"), "{panics}");
    let letters = wait(store.dead_letters(9)).expect("letters");
    let ids: Vec<_> = letters.iter().map(|letter| &*letter.id).collect();
    assert_eq!(
        (ids, names(&ran)),
        (vec!["a", "b", "panics"], vec!["x1".into(), "fails1".into()])
    );
}

#[test]
fn a_worker_that_drains_runs_what_is_due_and_gives_back_the_rest() {
    let store = Arc::new(MemoryStore::new());
    let (open, gate) = mpsc::channel::<()>();
    let (gate, ran) = (Mutex::new(gate), Ran::default());
    let note = noting(&ran);
    let worker = Worker::builder(Arc::clone(&store)).threads(1);
    let worker = worker.start(move |run| {
        let _ = gate.lock().map(|gate| gate.recv());
        note(run);
    });
    let worker = worker.expect("a worker");
    let tasks = ["1", "2", "3"].map(|id| Task::new(id, ""));
    wait(store.schedule_many(tasks.into())).expect("scheduled");
    schedule(&store, Task::new("later", "").after(Duration::from_secs(9)));
    eventually("all are held", || {
        let stats = worker.stats();
        (stats.running == 1 && stats.held == 4).then_some(())
    });
    drop(open);
    let stopped = worker.drain(Duration::from_secs(30));
    assert_eq!((stopped.left, stopped.released), (0, 1));
    assert_eq!((names(&ran).len(), store.len()), (3, 1));
}
