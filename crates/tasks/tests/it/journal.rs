//! The store of one machine, over a journal.

use std::time::Duration;

use tidewheel_scheduler::MemoryJournal;
use tidewheel_tasks::{
    Ask, Due, Failure, JournalStore, ManualClock, Priority, Task, TaskStore, wait,
};

use crate::common::{EPOCH, MS};
use crate::conformance::suite;

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
    drop(store);

    let store = open(&journal, &clock);
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
        (held.every, held.priority),
        (Some(MS(60_000)), Priority::High)
    );
    let fails = of("fails").expect("its retry");
    assert_eq!((fails.attempt, &*fails.payload), (2, &b"fails"[..]));
    assert_eq!(fails.began, claim("fails").due);
    assert!(of("later").is_none() && of("dies").is_none());
}
