//! A durable scheduler among journals that panic, handlers that block, and more due tasks than there is room for.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, SystemTime};

use tidewheel_scheduler::{
    BackPressure, Change, Durable, Error, Journal, JournalError, ManualClock, Record, Scheduler,
};

use common::memory::MemoryJournal;
use common::{Gate, HOUR, MS, PATIENCE, eventually};

/// A journal that panics on request, and whose epoch is what one says.
#[derive(Clone)]
struct Fragile {
    notes: MemoryJournal<u32, ()>,
    panics: Arc<AtomicBool>,
    epoch: u64,
}

impl Fragile {
    fn new(epoch: u64) -> Self {
        Self {
            notes: MemoryJournal::empty(),
            panics: Arc::default(),
            epoch,
        }
    }
}

impl Journal<u32, ()> for Fragile {
    fn append(&self, changes: &[Change<'_, u32, ()>]) -> Result<u64, JournalError> {
        assert!(!self.panics.load(SeqCst), "a journal that panics");
        self.notes.append(changes)
    }

    fn wait(&self, appended: u64) -> Result<(), JournalError> {
        self.notes.wait(appended)
    }

    fn load(&self) -> Result<Vec<Record<u32, ()>>, JournalError> {
        self.notes.load()
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }
}

#[test]
fn a_journal_that_panics_has_failed_and_ends_no_thread() {
    let journal = Fragile::new(1);
    let (ran, runs) = channel();
    let builder = Scheduler::builder().workers(1);
    let tasks = Durable::start(builder, journal.clone(), move |_, run| {
        ran.send(run.key).expect("the test lives");
    })
    .expect("starts");
    tasks.set(1, (), 20 * MS).expect("on disk");
    journal.panics.store(true, SeqCst);
    // The end of the first cannot be written.
    assert_eq!(runs.recv_timeout(PATIENCE), Ok(1));
    assert!(matches!(tasks.set(2, (), MS), Err(Error::Journal(_))));
    assert_eq!(runs.recv_timeout(PATIENCE), Ok(2), "the worker has ended");
    journal.panics.store(false, SeqCst);
    assert!(matches!(tasks.flush(), Err(Error::Journal(_))));
    let stopped = tasks.stop(PATIENCE);
    assert!(stopped.journal.is_err() && stopped.running == 0);
}

#[test]
fn an_epoch_that_would_repeat_ids_is_refused() {
    let start = |epoch| {
        let clock = ManualClock::new();
        Durable::manual(Scheduler::builder(), &clock, Fragile::new(epoch), |_, _| {})
    };
    assert!(start((1 << 24) - 1).is_ok());
    assert!(matches!(start(1 << 24), Err(Error::Journal(_))));
}

#[test]
fn a_start_with_more_due_tasks_than_there_is_room_for_does_not_wait_for_room() {
    let due = SystemTime::UNIX_EPOCH;
    // Of each key an older task, which was cut off.
    let twice = (0..2).flat_map(|_| (0..500u32).map(|key| (key, (), due)));
    let journal = MemoryJournal::with(twice);
    let gate = Arc::new(Gate::default());
    let (started, is_started) = channel();
    let (behind_gate, own) = (Arc::clone(&gate), journal.clone());
    let starting = thread::spawn(move || {
        let starter = thread::current().id();
        let builder = Scheduler::builder()
            .workers(1)
            .queue(1)
            .back_pressure(BackPressure::Wait);
        let tasks = Durable::start(builder, own, move |tasks, run| {
            if thread::current().id() == starter {
                tasks.set(1_000 + run.key, (), HOUR).expect("on disk");
            } else {
                behind_gate.pass();
            }
        });
        started.send(()).expect("the test lives");
        tasks.expect("starts")
    });
    let start = is_started.recv_timeout(PATIENCE);
    gate.open();
    assert!(start.is_ok(), "the start waits for its own workers");
    let tasks = starting.join().expect("no panic");
    eventually("all have run", || tasks.stats().completed == 1_000);
    let stopped = tasks.stop(PATIENCE);
    assert_eq!((stopped.pending.len(), stopped.journal), (500, Ok(())));
}

#[test]
fn a_handler_may_do_everything_with_its_own_key() {
    let clock = ManualClock::new();
    let journal = MemoryJournal::empty();
    let tasks = Durable::manual(
        Scheduler::builder(),
        &clock,
        journal.clone(),
        |tasks, run| {
            let key: u32 = run.key;
            assert_eq!(tasks.get(&key), None, "it is not pending any more");
            assert_eq!(tasks.set(key, 1, HOUR).expect("on disk"), None);
            assert!(tasks.move_to(&key, 2 * HOUR).expect("on disk"));
            assert_eq!(tasks.set(key, 2, MS).expect("on disk"), Some(1));
            assert_eq!(tasks.remove(&key).expect("on disk"), Some(2));
            assert_eq!(tasks.set(key, 3, HOUR).expect("on disk"), None);
            tasks.flush().expect("on disk");
        },
    )
    .expect("valid");
    tasks.set(7, 0, MS).expect("on disk");
    clock.advance(MS);
    assert_eq!(tasks.advance(u32::MAX).fired, 1);
    assert_eq!((tasks.stats().panicked, tasks.get(&7)), (0, Some(HOUR)));
    drop(tasks);
    let tasks = Durable::manual(Scheduler::builder(), &clock, journal.reopened(), |_, _| {});
    let stopped = tasks.expect("valid").stop(Duration::ZERO);
    assert_eq!(stopped.pending, [(7, 3, HOUR)]);
}
