//! A durable scheduler among journals that panic, handlers that block, and more due tasks than
//! there is room for.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, SystemTime};

use tidewheel_scheduler::{
    BackPressure, Change, Durable, DurableHandle, Error, Journal, JournalError, ManualClock,
    Record, Scheduler,
};

use crate::common::memory::MemoryJournal;
use crate::common::{Gate, HOUR, MS, PATIENCE, eventually};

type InMemory = tidewheel_scheduler::MemoryJournal<u32, CallsInDrop>;

/// A value that calls the scheduler when it is dropped.
#[derive(Clone)]
struct CallsInDrop(Arc<OnceLock<DurableHandle<u32, Self, InMemory>>>);

impl Drop for CallsInDrop {
    fn drop(&mut self) {
        if let Some(jobs) = self.0.get() {
            jobs.move_to(&9, HOUR).expect("kept");
        }
    }
}

#[test]
fn values_of_a_journal_in_memory_may_call_the_scheduler_when_they_are_dropped() {
    let value = CallsInDrop(Arc::default());
    let (clock, journal) = (ManualClock::new(), InMemory::new());
    let jobs = Durable::manual(Scheduler::builder(), &clock, journal.clone(), |_, _| {});
    let jobs = jobs.expect("valid");
    assert!(value.0.set(jobs.handle()).is_ok());
    for key in 1..=3 {
        jobs.set(key, value.clone(), MS * key).expect("kept");
    }
    clock.advance(MS);
    assert_eq!(jobs.run_due(), 1);
    drop(jobs.set(2, value.clone(), HOUR).expect("kept"));
    drop(jobs.remove(&3).expect("kept"));
    jobs.flush().expect("the journal has not failed");
    assert_eq!(journal.load().expect("kept").len(), 1);
}

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
    // Each key also has an older task, which a crash had cut off.
    let twice = (0..2).flat_map(|_| (0..500u32).map(|key| (key, (), due)));
    let journal = MemoryJournal::with(twice);
    let gate = Arc::new(Gate::default());
    let (started, is_started) = channel();
    let (behind_gate, own) = (Arc::clone(&gate), journal.clone());
    let starting = thread::spawn(move || {
        let builder = Scheduler::builder()
            .workers(1)
            .queue(1)
            .back_pressure(BackPressure::Wait);
        let tasks = Durable::start(builder, own, move |tasks, run| {
            behind_gate.pass();
            let other = 1_000 + run.key;
            if tasks.get(&other).is_none() {
                tasks.set(other, (), HOUR).expect("on disk");
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
    assert_eq!(tasks.advance(tasks.now(), u32::MAX).fired, 1);
    assert_eq!((tasks.stats().panicked, tasks.get(&7)), (0, Some(HOUR)));
    drop(tasks);
    let tasks = Durable::manual(Scheduler::builder(), &clock, journal.reopened(), |_, _| {});
    let stopped = tasks.expect("valid").stop(Duration::ZERO);
    assert_eq!(stopped.pending, [(7, 3, HOUR)]);
}

thread_local! {
    /// The function that the next drop of a key or value on this thread calls.
    static ON_DROP: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// A key or value whose drop calls somebody.
#[derive(Debug, Clone)]
struct Calling(u32);

impl Drop for Calling {
    fn drop(&mut self) {
        let call = ON_DROP.with_borrow_mut(Option::take);
        call.into_iter().for_each(|call| call());
    }
}

impl PartialEq for Calling {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Calling {}

impl Hash for Calling {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A journal that keeps nothing: it drops neither keys nor values.
struct Forgetful;

impl Journal<Calling, Calling> for Forgetful {
    fn append(&self, _: &[Change<'_, Calling, Calling>]) -> Result<u64, JournalError> {
        Ok(1)
    }

    fn wait(&self, _: u64) -> Result<(), JournalError> {
        Ok(())
    }

    fn load(&self) -> Result<Vec<Record<Calling, Calling>>, JournalError> {
        Ok(Vec::new())
    }

    fn epoch(&self) -> u64 {
        1
    }
}

#[test]
fn drops_of_keys_and_values_may_call_the_scheduler() {
    let clock = ManualClock::new();
    let tasks = Durable::manual(Scheduler::builder(), &clock, Forgetful, |_, _| {});
    let tasks = Arc::new(tasks.expect("valid"));
    let called = Arc::new(AtomicU64::new(0));
    let drops_call = || {
        let (tasks, called) = (Arc::clone(&tasks), Arc::clone(&called));
        let call = move || {
            called.fetch_add(1, SeqCst);
            drop(tasks.set(Calling(9), Calling(9), HOUR));
        };
        ON_DROP.with_borrow_mut(|slot| *slot = Some(Box::new(call)));
    };
    let set = || tasks.set(Calling(1), Calling(1), HOUR);
    let one = Calling(1);
    drop(set().expect("on disk"));
    drops_call();
    drop(set().expect("replaced on disk"));
    drops_call();
    drop(tasks.remove(&one).expect("on disk"));
    drops_call();
    assert_eq!(tasks.stop(Duration::ZERO).pending.len(), 1);
    drops_call();
    assert!(matches!(set(), Err(Error::Stopped)));
    assert_eq!(called.load(SeqCst), 4);
}
