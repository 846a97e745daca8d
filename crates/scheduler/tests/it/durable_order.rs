//! The threads of a durable scheduler and its journal: no two wait for each other, and the last
//! change of a key wins.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;
use std::time::Duration;

use tidewheel_scheduler::{BackPressure, Clock, Durable, Scheduler, SystemClock};

use crate::common::memory::MemoryJournal;
use crate::common::{Gate, HOUR, MS, PATIENCE, eventually};

/// A key of which all are in one stripe and one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Crowded(u32);

impl Hash for Crowded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        0u32.hash(state);
    }
}

#[test]
fn a_setter_that_waits_for_room_does_not_hold_what_workers_need_to_make_it() {
    let gate = Arc::new(Gate::default());
    let behind_gate = Arc::clone(&gate);
    let tasks = Durable::start(
        Scheduler::<Crowded, _>::builder()
            .workers(1)
            .queue(1)
            .back_pressure(BackPressure::Wait),
        MemoryJournal::empty(),
        move |_, _| behind_gate.pass(),
    )
    .expect("starts");
    tasks.set(Crowded(0), (), Duration::ZERO).expect("on disk");
    eventually("a handler runs", || tasks.stats().running == 1);
    tasks.set(Crowded(1), (), Duration::ZERO).expect("on disk");
    eventually("a task waits", || tasks.stats().queued == 1);
    let (done, is_set) = sync_channel(1);
    let tasks = Arc::new(tasks);
    let setting = Arc::clone(&tasks);
    thread::spawn(move || {
        setting.set(Crowded(2), (), HOUR).expect("on disk");
        done.send(()).expect("the test lives");
    });
    // A short while must do: the setter waits for room however long one waits here.
    assert!(is_set.recv_timeout(50 * MS).is_err(), "it did not wait");
    gate.open();
    let set = is_set.recv_timeout(PATIENCE);
    assert!(set.is_ok(), "setter and worker wait for each other");
}

thread_local! {
    /// True if the next hash on this thread waits until another thread is through.
    static STOPS: Cell<bool> = const { Cell::new(false) };
}

/// A key that stops a thread when it is first hashed: after a call began, before it takes any lock.
#[derive(Clone)]
struct Slow {
    reached: Arc<Gate>,
    released: Arc<Gate>,
}

impl PartialEq for Slow {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Slow {}

impl Hash for Slow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if STOPS.replace(false) {
            self.reached.open();
            self.released.pass();
        }
        1u8.hash(state);
    }
}

#[test]
fn of_two_sets_of_one_key_the_last_one_in_memory_is_pending_after_a_crash() {
    let key = Slow {
        reached: Arc::default(),
        released: Arc::default(),
    };
    let journal = MemoryJournal::empty();
    let (started, starts) = channel();
    let hang = Arc::new(Gate::default());
    let hangs = Arc::clone(&hang);
    let builder = || Scheduler::builder().workers(1);
    let tasks = Durable::start(builder(), journal.clone(), move |_, run| {
        started.send(run.value).expect("the test lives");
        hangs.pass();
    })
    .expect("starts");
    thread::scope(|scope| {
        let later = scope.spawn(|| {
            STOPS.set(true);
            tasks.set(key.clone(), "in an hour", HOUR).expect("on disk")
        });
        key.reached.pass();
        let old = tasks.set(key.clone(), "now", Duration::ZERO);
        assert_eq!(old.expect("on disk"), None);
        assert_eq!(starts.recv_timeout(PATIENCE), Ok("now"));
        key.released.open();
        assert_eq!(later.join().expect("no panic"), None);
    });
    // A crash, while the first handler has not come back.
    let (ran, runs) = channel();
    let restarted = Durable::start(builder(), journal.reopened(), move |_, run| {
        ran.send(run.value).expect("the test lives");
    })
    .expect("starts");
    assert_eq!(
        runs.recv_timeout(PATIENCE),
        Ok("now"),
        "it ran an hour early"
    );
    let left = restarted.get(&key).expect("the other one is pending");
    assert!(left > HOUR / 2, "{left:?}");
    hang.open();
}

#[test]
fn restoring_does_not_overwrite_what_handlers_of_restored_tasks_have_set() {
    const TASKS: u64 = 20_000;
    let now = SystemClock::new().wall();
    // The first task is due. It sets the others again, whose restored deadlines are an hour away.
    let due = |key| if key == 0 { now } else { now + HOUR };
    let journal = MemoryJournal::with((0..TASKS).map(|key| (key, "old", due(key))));
    let (set, is_set) = channel();
    let tasks = Durable::start(Scheduler::builder(), journal, move |tasks, run| {
        if run.value == "old" {
            for key in (1..TASKS).rev().step_by(100) {
                let old = tasks.set(key, "new", 2 * HOUR).expect("on disk");
                assert_eq!(old, Some("old"), "set before it was restored");
            }
            set.send(()).expect("the test lives");
        }
    })
    .expect("starts");
    is_set.recv_timeout(PATIENCE).expect("the first one runs");
    for key in (1..TASKS).rev().step_by(100) {
        let left = tasks.get(&key).expect("pending");
        assert!(left > HOUR + HOUR / 2, "task {key} is the old one again");
    }
    assert_eq!(tasks.stats().pending as u64, TASKS - 1);
}

#[test]
fn when_stop_returns_the_ends_of_all_runs_are_on_disk() {
    let journal = MemoryJournal::empty();
    let tasks = Durable::start(Scheduler::builder(), journal.clone(), |_, _| {}).expect("starts");
    for key in 0..100u32 {
        tasks.set(key, (), MS).expect("on disk");
    }
    eventually("all have run", || tasks.stats().completed == 100);
    let stopped = tasks.stop(PATIENCE);
    assert!(stopped.pending.is_empty());
    let (appended, synced) = journal.progress();
    assert_eq!(appended, synced, "an end was left to chance");
}

#[test]
fn no_call_succeeds_after_the_journal_has_failed_once() {
    let journal = MemoryJournal::empty();
    let tasks = Durable::start(Scheduler::builder(), journal.clone(), |_, _| {}).expect("starts");
    journal.set_broken(true);
    assert!(tasks.set(1, (), HOUR).is_err());
    // Memory holds a task that the journal does not know: moving it cannot be made durable.
    journal.set_broken(false);
    assert!(tasks.move_to(&1, 2 * HOUR).is_err());
    assert!(tasks.set(2, (), HOUR).is_err());
}
