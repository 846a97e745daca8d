//! The store of one machine, over a journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use tidewheel_scheduler::{Change, JournalError, MemoryJournal, Record};
use tidewheel_tasks::{
    Ask, Due, Failure, JournalStore, ManualClock, Priority, Rhythm, StoreError, Task, TaskStore,
    wait,
};

use crate::common::{EPOCH, MS};
use crate::conformance::suite;
use crate::model::models;

type Journal = MemoryJournal<String, Vec<u8>>;

fn open(journal: &Journal, clock: &ManualClock) -> JournalStore<Journal> {
    JournalStore::new(journal.clone(), clock.clone()).expect("a journal")
}

fn clock() -> ManualClock {
    let clock = ManualClock::new();
    clock.set_wall(EPOCH);
    clock
}

#[test]
fn a_journal_does_what_every_store_must() {
    let (journal, clock) = (Journal::like_a_file(), clock());
    let store = open(&journal, &clock);
    suite(&store, MS(2000), &|time| clock.advance(time));
    assert_eq!(format!("{journal:?}"), "MemoryJournal { jobs: 0 }");
}

#[test]
fn a_journal_answers_as_the_model_does() {
    let (journal, clock) = (Journal::like_a_file(), clock());
    let store = open(&journal, &clock);
    models(&store, 0..100, &|time| clock.advance(time));
    assert_eq!(format!("{journal:?}"), "MemoryJournal { jobs: 0 }");
}

/// A journal on a disk that may be full.
#[derive(Clone, Default)]
struct Disk {
    journal: Journal,
    is_full: Arc<AtomicBool>,
}

impl tidewheel_scheduler::Journal<String, Vec<u8>> for Disk {
    fn append(&self, changes: &[Change<'_, String, Vec<u8>>]) -> Result<u64, JournalError> {
        match self.is_full.load(SeqCst) {
            true => Err(JournalError::new("no space left")),
            false => self.journal.append(changes),
        }
    }

    fn wait(&self, appended: u64) -> Result<(), JournalError> {
        tidewheel_scheduler::Journal::<String, Vec<u8>>::wait(&self.journal, appended)
    }

    fn load(&self) -> Result<Vec<Record<String, Vec<u8>>>, JournalError> {
        self.journal.load()
    }

    fn epoch(&self) -> u64 {
        tidewheel_scheduler::Journal::<String, Vec<u8>>::epoch(&self.journal)
    }
}

/// What the file did not have was claimed and run, and a cancel that had failed answered that there
/// was no such task.
#[test]
fn what_could_not_be_written_is_neither_claimed_nor_answered() {
    let (disk, clock) = (Disk::default(), clock());
    let store = JournalStore::new(disk.clone(), clock.clone()).expect("a journal");
    wait(store.schedule(Task::new("kept", "7"))).expect("scheduled");
    disk.is_full.store(true, SeqCst);
    assert!(wait(store.cancel("kept")).is_err());
    assert!(wait(store.cancel("kept")).is_err(), "nobody knows");
    assert!(wait(store.schedule(Task::new("lost", "8"))).is_err());
    disk.is_full.store(false, SeqCst);
    let ask = || Ask::new("w", Duration::from_secs(1), MS(5000), 10);
    assert!(wait(store.claim(ask())).is_err());
    drop(store);
    let store = JournalStore::new(disk, clock).expect("a journal");
    let claims = wait(store.claim(ask())).expect("claims");
    let ids: Vec<_> = claims.iter().map(|claim| &*claim.id).collect();
    assert_eq!(ids, ["kept"]);
}

#[test]
fn tasks_letters_attempts_and_fences_survive() {
    let (journal, clock) = (Journal::like_a_file(), clock());
    let store = open(&journal, &clock);
    let ask = || Ask::new("w", Duration::from_secs(1), MS(5000), 10);
    for id in ["dies", "fails", "held", "later"] {
        let task = Task::new(id, id).priority(Priority::High);
        wait(store.schedule(task.every(MS(60_000)))).expect("scheduled");
    }
    assert_eq!(
        wait(store.reschedule("later", Due::After(MS(9000)))),
        Ok(true)
    );
    let claims = wait(store.claim(ask())).expect("claims");
    let claim = |id: &str| claims.iter().find(|claim| claim.id == id).expect("claimed");
    let retry = Failure::retry(Due::After(MS(100)), "busy");
    assert!(wait(store.fail(claim("fails"), retry)).is_ok());
    assert!(wait(store.fail(claim("dies"), Failure::dead("gone"))).is_ok());
    assert_eq!(wait(store.pause("mails")), Ok(()));
    let unique = || Task::new("unique", "").after(MS(9000)).unique_for(MS(9000));
    assert!(wait(store.schedule(unique())).is_ok());
    drop(store);

    let store = open(&journal, &clock);
    assert_eq!(wait(store.paused()), Ok(vec!["mails".to_owned()]));
    assert_eq!(wait(store.schedule(unique())), Err(StoreError::Duplicate));
    let letters = wait(store.dead_letters(10)).expect("letters");
    assert_eq!((letters.len(), &*letters[0].error), (1, "gone"));
    let again = wait(store.claim(ask())).expect("claims");
    let of = |id: &str| again.iter().find(|claim| claim.id == id);
    // The end of the process ended its leases.
    let held = of("held").expect("claimable at once");
    assert!(
        held.fence
            > claims
                .iter()
                .map(|claim| claim.fence)
                .max()
                .expect("claims")
    );
    assert_eq!(
        (held.terms.rhythm.clone(), held.priority),
        (Some(Rhythm::Every(MS(60_000))), Priority::High)
    );
    let fails = of("fails").expect("its retry");
    assert_eq!((fails.attempt, &*fails.payload), (2, &b"fails"[..]));
    assert_eq!(fails.began, claim("fails").due);
    assert!(of("later").is_none() && of("dies").is_none());
}
