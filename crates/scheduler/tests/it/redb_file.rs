//! The journal's file: its versions, the values that serde writes, and the time that many jobs
//! take.

use std::path::{Path, PathBuf};
use std::time::Duration;

use redb::{Database, ReadableDatabase, ReadableTableMetadata, TableDefinition};
use serde::{Deserialize, Serialize};
use tidewheel_scheduler::{
    CatchUp, Clock, Durable, Error, Json, ManualClock, MemoryJournal, Outcome, RedbJournal, Retry,
    Scheduler, Stored, SystemClock,
};

use crate::common::{HOUR, MS};

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

fn file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("file-{name}"));
    if path.exists() {
        std::fs::remove_file(&path).expect("ours");
    }
    path
}

fn open(path: &Path) -> RedbJournal {
    RedbJournal::open(path).expect("opens")
}

#[test]
fn a_file_of_an_earlier_version_is_refused_with_a_message_and_stays_as_it_is() {
    let path = file("version-1");
    let tasks: TableDefinition<'_, u64, (&[u8], &[u8])> = TableDefinition::new("tasks");
    let database = Database::create(&path).expect("writable");
    let transaction = database.begin_write().expect("writable");
    {
        let mut tasks = transaction.open_table(tasks).expect("opens");
        tasks
            .insert(3 << 40, (&[7; 8][..], &b"mail"[..]))
            .expect("writable");
        let mut meta = transaction.open_table(META).expect("opens");
        meta.insert("epoch", 3).expect("writable");
    }
    transaction.commit().expect("on disk");
    drop(database);
    for refused in [
        RedbJournal::open(&path).expect_err("an earlier one"),
        RedbJournal::open_salvaging(&path).expect_err("an earlier one"),
    ] {
        let refused = refused.to_string();
        assert!(
            refused.contains("version 1") && refused.contains("3"),
            "{refused}"
        );
    }
    let database = Database::create(&path).expect("opens");
    let transaction = database.begin_read().expect("reads");
    let tasks = transaction.open_table(tasks).expect("it is there");
    assert_eq!(tasks.len().expect("reads"), 1);
}

#[test]
fn a_file_that_is_open_already_is_refused_with_its_path_and_what_to_do() {
    let path = file("open");
    let first = open(&path);
    for refused in [
        RedbJournal::open(&path).expect_err("it is open"),
        RedbJournal::open_salvaging(&path).expect_err("it is open"),
    ] {
        let refused = refused.to_string();
        assert!(refused.starts_with(&*path.to_string_lossy()), "{refused}");
        assert!(refused.contains("is open already") && refused.contains("stop the other program"));
    }
    drop(first);
    drop(open(&path));
    let directory = RedbJournal::open(path.parent().expect("a directory"));
    let refused = directory.expect_err("no file").to_string();
    assert!(
        refused.contains("tmp") && !refused.contains("damaged"),
        "{refused}"
    );
}

#[test]
fn a_file_of_a_later_version_is_refused_with_a_message() {
    let path = file("version-9");
    drop(open(&path));
    let database = Database::create(&path).expect("opens");
    let transaction = database.begin_write().expect("writable");
    transaction
        .open_table(META)
        .expect("opens")
        .insert("version", 9)
        .expect("writable");
    transaction.commit().expect("on disk");
    drop(database);
    let refused = RedbJournal::open(&path)
        .expect_err("a later one")
        .to_string();
    assert!(refused.contains("version 9"), "{refused}");
}

#[test]
fn attempts_letters_and_rhythms_are_in_the_file() {
    let path = file("status");
    let clock = ManualClock::new();
    let start = || {
        let builder = Scheduler::<u64, String>::builder().durable(open(&path));
        let jobs = builder
            .retry(Retry::default().attempts(2))
            .manual(&clock, |_, run| match run.value.as_str() {
                "dead" => Outcome::dead("for ever"),
                "periodic" => Outcome::Done,
                _ => Outcome::retry_after(HOUR, "not yet"),
            });
        jobs.expect("valid")
    };
    let jobs = start();
    jobs.set_many([(1, "dead".to_owned(), MS), (2, "failing".to_owned(), MS)])
        .expect("on disk");
    let periodic = "periodic".to_owned();
    jobs.set_periodic(3, periodic, MS, 2 * HOUR, CatchUp::Burst(7))
        .expect("on disk");
    clock.advance(MS);
    assert_eq!(jobs.run_due(), 3);
    drop(jobs);
    let jobs = start();
    let letters = jobs.dead_letters();
    assert_eq!(
        (letters.len(), letters[0].key, letters[0].error.as_str()),
        (1, 1, "for ever")
    );
    let failing = jobs.iter().find(|job| job.key == 2).expect("pending");
    assert_eq!(
        (failing.attempt, failing.error.as_deref()),
        (2, Some("not yet"))
    );
    assert_eq!((failing.left, jobs.len()), (HOUR, 2));
    let periodic = jobs.iter().find(|job| job.key == 3).expect("pending");
    assert_eq!((periodic.left, periodic.period), (2 * HOUR, Some(2 * HOUR)));
    jobs.requeue(letters[0].id, HOUR).expect("on disk");
    drop(jobs);
    let jobs = start();
    assert_eq!((jobs.len(), jobs.stats().dead), (3, 0));
    assert_eq!(jobs.drain(|_, _| {}).expect("on disk"), 3);
    drop(jobs);
    assert!(start().is_empty());
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Mail {
    to: Vec<String>,
    weight: f64,
}

#[test]
fn what_serde_writes_comes_back_and_what_it_cannot_write_is_refused_before_anything_changes() {
    let path = file("serde");
    let clock = ManualClock::new();
    let mail = |weight| {
        Json(Mail {
            to: vec!["ada".to_owned()],
            weight,
        })
    };
    let builder = Scheduler::<Json<(String, u8)>, Json<Mail>>::builder;
    let key = Json(("a".to_owned(), 7));
    let jobs = Durable::manual(builder(), &clock, open(&path), |_, _| {}).expect("valid");
    jobs.set(key.clone(), mail(0.5), HOUR).expect("on disk");
    let refused = jobs.set(key.clone(), mail(f64::NAN), HOUR);
    let Err(refused @ Error::Refused(_)) = refused else {
        panic!("{refused:?}");
    };
    let refused = refused.to_string();
    assert!(refused.starts_with("the job cannot be written: its value is at fault"));
    assert_eq!(jobs.peek(&key, |mail| mail.weight), Some(0.5));
    jobs.flush().expect("the journal has not failed");
    let other = Json(("b".to_owned(), 8));
    let many = [
        (other.clone(), mail(1.5), HOUR),
        (key.clone(), mail(f64::NAN), HOUR),
    ];
    assert!(jobs.set_many(many).is_err());
    drop(jobs);
    let jobs = Durable::manual(builder(), &clock, open(&path), |_, _| {}).expect("valid");
    assert_eq!(jobs.remove(&key).expect("on disk"), Some(mail(0.5)));
    assert_eq!(jobs.remove(&other).expect("on disk"), Some(mail(1.5)));
}

#[test]
fn a_journal_in_memory_that_is_like_a_file_refuses_what_the_file_refuses() {
    let builder = Scheduler::<u32, Json<f64>>::builder;
    let clock = ManualClock::new();
    let like_a_file = MemoryJournal::like_a_file();
    let jobs = Durable::manual(builder(), &clock, like_a_file, |_, _| {}).expect("valid");
    assert!(Json(Some(f64::NAN)).check().is_err(), "it is None then");
    let refused = jobs.set(1, Json(f64::NAN), HOUR);
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    jobs.set(1, Json(0.5), HOUR).expect("kept");
    let jobs = Durable::manual(builder(), &clock, MemoryJournal::new(), |_, _| {}).expect("valid");
    jobs.set(1, Json(f64::NAN), HOUR).expect("kept");
}

#[test]
fn a_damaged_file_is_an_error_and_no_panic() {
    let path = file("damaged");
    let start = |path: &Path| {
        let journal = RedbJournal::open(path).map_err(Error::Journal)?;
        Durable::manual(
            Scheduler::<u64, String>::builder(),
            &ManualClock::new(),
            journal,
            |_, _| {},
        )
    };
    let jobs = start(&path).expect("starts");
    let many = (0..2000).map(|key| (key, "x".repeat(100), HOUR));
    jobs.set_many(many).expect("on disk");
    drop(jobs);
    let whole = std::fs::read(&path).expect("readable");
    // Pages that are exchanged have checksums of their own, but are not what is expected there.
    for page in 1..60 {
        let mut damaged = whole.clone();
        let (from, to) = (page * 4096, (page * 7 % 60 + 1) * 4096);
        damaged.copy_within(from..from + 4096, to);
        std::fs::write(&path, damaged).expect("writable");
        let started =
            std::panic::catch_unwind(|| start(&path).err().map(|error| error.to_string()));
        let refused = started.expect("an error, no panic").unwrap_or_default();
        if refused.contains("redb panicked") {
            return;
        }
    }
    panic!("no damage that redb panics at");
}

#[test]
#[ignore = "a measurement: run by name, in a release build"]
fn how_long_ten_thousand_jobs_take() {
    let path = file("many");
    let jobs = Durable::start(Scheduler::<u64, String>::builder(), open(&path), |_, _| {});
    let jobs = jobs.expect("starts");
    let clock = SystemClock::new();
    let many = (0..10_000).map(|key| (key, "x".repeat(100), HOUR));
    jobs.set_many(many).expect("on disk");
    let together = clock.now();
    let few = 200;
    for key in 0..few {
        jobs.set(key, "x".repeat(100), HOUR).expect("on disk");
    }
    let each = (clock.now() - together) / u32::try_from(few).expect("few");
    println!("10,000 together: {together:?}; one by one: {each:?} each");
    assert!(together < Duration::from_secs(60));
}
