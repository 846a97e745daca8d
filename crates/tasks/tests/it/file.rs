//! The store in a file: what every store must do, its versions, a full disk, and the time that
//! many tasks take.

use std::path::PathBuf;
use std::time::Duration;

use redb::{Database, ReadableDatabase, ReadableTableMetadata, TableDefinition};
use tidewheel_engines::Folder;
use tidewheel_tasks::{
    Ask, Clock, Due, Failure, FileStore, ManualClock, Priority, Rhythm, State, StoreError,
    SystemClock, Task, TaskStore, wait,
};

use crate::common::{EPOCH, MS};
use crate::conformance::suite;
use crate::disk::Disk;
use crate::model::models;

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const HOUR: Duration = Duration::from_secs(3600);

fn clock() -> ManualClock {
    let clock = ManualClock::new();
    clock.set_wall(EPOCH);
    clock
}

fn file(folder: &Folder) -> PathBuf {
    folder.path().join("tasks.redb")
}

fn over(disk: &Disk, clock: &ManualClock) -> FileStore {
    FileStore::over(disk.clone(), clock.clone()).expect("it opens")
}

#[test]
fn a_file_does_what_every_store_must() {
    let (folder, clock) = (Folder::new("file-suite"), clock());
    let open = || FileStore::open_with_clock(file(&folder), clock.clone()).expect("opens");
    let store = open();
    suite(&store, MS(2000), &|time| clock.advance(time));
    drop(store);
    let store = open();
    assert_eq!((store.len(), wait(store.dead_letters(9))), (0, Ok(vec![])));
}

#[test]
fn a_journal_answers_as_the_model_does_and_nothing_is_left_in_it() {
    let (disk, clock) = (Disk::default(), clock());
    let store = over(&disk, &clock);
    models(&store, 0..100, &|time| clock.advance(time));
    // Results, and ids that are unique, go when their time is over: some with each call.
    clock.advance(Duration::from_secs(7200));
    for _ in 0..200 {
        let ask = Ask::new("w", MS(100), MS(5000), 10);
        assert_eq!(wait(store.claim(ask)), Ok(vec![]));
    }
    assert!(disk.records().is_empty());
}

#[test]
fn a_file_of_the_version_before_this_one_is_refused_as_it_is() {
    let folder = Folder::new("file-version-3");
    let jobs: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("jobs");
    let database = Database::create(file(&folder)).expect("a file");
    let transaction = database.begin_write().expect("writable");
    {
        let mut meta = transaction.open_table(META).expect("opens");
        meta.insert("version", 3).expect("writable");
        let mut jobs = transaction.open_table(jobs).expect("opens");
        jobs.insert(7, &b"a job"[..]).expect("writable");
    }
    transaction.commit().expect("on disk");
    drop(database);
    for refused in [
        FileStore::open(file(&folder)).expect_err("an older one"),
        FileStore::open_salvaging(file(&folder)).expect_err("an older one"),
    ] {
        let refused = refused.to_string();
        assert!(refused.contains("version 3"), "{refused}");
        assert!(refused.contains("that older one"), "{refused}");
    }
    let database = Database::create(file(&folder)).expect("opens");
    let transaction = database.begin_read().expect("reads");
    let jobs = transaction.open_table(jobs).expect("it is there");
    assert_eq!(jobs.len().expect("reads"), 1);
}

#[test]
fn a_file_of_a_later_version_is_refused_with_a_message() {
    let folder = Folder::new("file-version-9");
    drop(FileStore::open(file(&folder)).expect("opens"));
    let database = Database::create(file(&folder)).expect("opens");
    let transaction = database.begin_write().expect("writable");
    let mut meta = transaction.open_table(META).expect("opens");
    meta.insert("version", 9).expect("writable");
    drop(meta);
    transaction.commit().expect("on disk");
    drop(database);
    let refused = FileStore::open(file(&folder)).expect_err("a later one");
    let refused = refused.to_string();
    assert!(refused.contains("version 9"), "{refused}");
}

/// It was called damaged, and one was sent to salvage it.
#[test]
fn what_is_no_file_of_tasks_is_refused_as_that_and_stays() {
    let folder = Folder::new("file-text");
    let text = folder.path().join("notes.txt");
    for words in ["buy bread, and write to the baker", "x"] {
        std::fs::write(&text, words).expect("a file");
        let opened = FileStore::open(&text).map(drop);
        let salvaged = FileStore::open_salvaging(&text).map(drop);
        for refused in [opened, salvaged] {
            let refused = refused.expect_err("it is a text").to_string();
            assert!(refused.contains("no file of tasks"), "{refused}");
        }
        assert_eq!(std::fs::read_to_string(&text).expect("a file"), words);
    }
    let refused = FileStore::open(folder.path()).expect_err("it is a folder");
    assert!(
        refused.to_string().contains("no file of tasks"),
        "{refused}"
    );
}

#[test]
fn a_file_that_is_open_already_is_refused_with_its_path_and_what_to_do() {
    let folder = Folder::new("file-open");
    let path = file(&folder);
    let first = FileStore::open(&path).expect("opens");
    for refused in [
        FileStore::open(&path).expect_err("it is open"),
        FileStore::open_salvaging(&path).expect_err("it is open"),
    ] {
        let refused = refused.to_string();
        assert!(refused.contains(&*path.to_string_lossy()), "{refused}");
        assert!(refused.contains("is open already") && refused.contains("stop the other program"));
    }
    drop(first);
    drop(FileStore::open(&path).expect("opens"));
    let refused = FileStore::open(folder.path()).expect_err("no file");
    let refused = refused.to_string();
    assert!(
        refused.contains("file-open") && !refused.contains("damaged"),
        "{refused}"
    );
}

#[test]
fn a_damaged_file_is_an_error_and_no_panic() {
    let folder = Folder::new("file-damaged");
    let path = file(&folder);
    let store = FileStore::open(&path).expect("opens");
    let task = |n: u64| Task::new(format!("{n}"), "x".repeat(100)).after(HOUR);
    wait(store.schedule_many((0..2000).map(task).collect())).expect("on disk");
    drop(store);
    let whole = std::fs::read(&path).expect("readable");
    // Pages that are exchanged have checksums of their own, but are not what is expected there.
    for page in 1..60 {
        let mut damaged = whole.clone();
        let (from, to) = (page * 4096, (page * 7 % 60 + 1) * 4096);
        damaged.copy_within(from..from + 4096, to);
        std::fs::write(&path, damaged).expect("writable");
        let opened = std::panic::catch_unwind(|| {
            let refused = FileStore::open(&path).err();
            refused.map(|error| error.to_string())
        });
        let refused = opened.expect("an error, no panic").unwrap_or_default();
        if refused.contains("redb panicked") {
            return;
        }
    }
    panic!("no damage that redb panics at");
}

/// The error came after some lines about a panic in redb.
#[test]
fn a_file_that_is_refused_prints_nothing() {
    let folder = Folder::new("file-silent");
    let program = std::env::current_exe().expect("this program");
    for how in ["damaged", "cut", "zeros", "folder", "foreign", "empty"] {
        let path = folder.path().join(how);
        let child = std::process::Command::new(&program)
            .args(["file::process_that_opens_what_is_no_file_of_tasks"])
            .args(["--exact", "--ignored", "--nocapture", "--quiet"])
            .env("TIDEWHEEL_REFUSED", &path)
            .output()
            .expect("a process");
        let printed = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "{how}: {printed}");
        assert_eq!(printed, "", "{how}");
    }
}

#[test]
#[ignore = "a process of another test"]
fn process_that_opens_what_is_no_file_of_tasks() {
    let Some(path) = std::env::var_os("TIDEWHEEL_REFUSED").map(PathBuf::from) else {
        return;
    };
    let refused = || match FileStore::open(&path) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    let how = path.file_name().and_then(|name| name.to_str());
    let (bytes, says) = match how.expect("a name") {
        "folder" => {
            std::fs::create_dir(&path).expect("a folder");
            assert!(refused().contains("no file of tasks"), "{}", refused());
            return;
        }
        "damaged" => return a_damaged_file_is_an_error_and_no_panic(),
        "cut" => {
            let store = FileStore::open(&path).expect("opens");
            let tasks = (0..2000).map(|n| Task::new(format!("{n}"), "x".repeat(100)).after(HOUR));
            wait(store.schedule_many(tasks.collect())).expect("on disk");
            drop(store);
            let mut whole = std::fs::read(&path).expect("readable");
            for length in [5, 9, 64, 319, 320, 4096, 4097, 40_960, whole.len() - 1] {
                std::fs::write(&path, &whole[..length]).expect("writable");
                let says = refused();
                assert!(says.contains("damaged"), "{length}: {says}");
                let nothing = FileStore::open_salvaging(&path).map(|(_, found)| found);
                assert!(length > 40_000 || nothing.is_err(), "{length}: {nothing:?}");
                std::fs::write(&path, &whole).expect("writable");
            }
            whole.push(0);
            (whole, "damaged")
        }
        "zeros" => (vec![0; 100_000], "no file of tasks"),
        "foreign" => (b"SQLite format 3\0".repeat(1000), "no file of tasks"),
        _ => {
            std::fs::write(&path, b"").expect("writable");
            assert_eq!(refused(), "", "an empty file is a new one");
            return;
        }
    };
    std::fs::write(&path, bytes).expect("writable");
    assert!(refused().contains(says), "{}", refused());
}

/// What the file did not have was claimed and run, and a cancel that had failed answered that there
/// was no such task.
#[test]
fn what_could_not_be_written_is_neither_claimed_nor_answered() {
    let (disk, clock) = (Disk::default(), clock());
    let store = over(&disk, &clock);
    wait(store.schedule(Task::new("kept", "7"))).expect("scheduled");
    disk.set_full(true);
    assert!(wait(store.cancel("kept")).is_err());
    assert!(wait(store.cancel("kept")).is_err(), "nobody knows");
    assert!(wait(store.schedule(Task::new("lost", "8"))).is_err());
    disk.set_full(false);
    let ask = || Ask::new("w", Duration::from_secs(1), MS(5000), 10);
    assert!(wait(store.claim(ask())).is_err());
    assert!(wait(store.list(State::Pending, None, None, 9)).is_err());
    drop(store);
    let store = over(&disk, &clock);
    let claims = wait(store.claim(ask())).expect("claims");
    let ids: Vec<_> = claims.iter().map(|claim| &*claim.id).collect();
    assert_eq!(ids, ["kept"]);
}

#[test]
fn tasks_letters_attempts_and_fences_survive() {
    let (folder, clock) = (Folder::new("file-survive"), clock());
    let open = || FileStore::open_with_clock(file(&folder), clock.clone()).expect("opens");
    let store = open();
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

    let store = open();
    assert_eq!(wait(store.paused()), Ok(vec!["mails".to_owned()]));
    assert_eq!(wait(store.schedule(unique())), Err(StoreError::Duplicate));
    let letters = wait(store.dead_letters(10)).expect("letters");
    assert_eq!((letters.len(), &*letters[0].error), (1, "gone"));
    let again = wait(store.claim(ask())).expect("claims");
    let of = |id: &str| again.iter().find(|claim| claim.id == id);
    // The end of the process ended its leases.
    let held = of("held").expect("claimable at once");
    let before = claims.iter().map(|claim| claim.fence);
    assert!(held.fence > before.max().expect("claims"));
    assert_eq!(
        (held.terms.rhythm.clone(), held.priority),
        (Some(Rhythm::Every(MS(60_000))), Priority::High)
    );
    let fails = of("fails").expect("its retry");
    assert_eq!((fails.attempt, &*fails.payload), (2, &b"fails"[..]));
    assert_eq!(fails.began, claim("fails").due);
    assert!(of("later").is_none() && of("dies").is_none());
}

#[test]
fn tasks_are_listed_in_the_order_of_their_ids() {
    let (disk, clock) = (Disk::default(), clock());
    let store = over(&disk, &clock);
    let ids = |after, most| {
        let listed = wait(store.list(State::Pending, None, after, most))
            .expect("listed")
            .into_iter();
        listed.map(|task| task.id).collect::<Vec<_>>()
    };
    let tasks = ["c", "a", "d", "b"].map(|id| Task::new(id, "").after(HOUR));
    wait(store.schedule_many(tasks.into())).expect("scheduled");
    assert_eq!(ids(None, 9), ["a", "b", "c", "d"]);
    assert_eq!(ids(Some("a"), 2), ["b", "c"]);
    assert_eq!(ids(Some("d"), 2), [""; 0]);
    assert_eq!(ids(None, 0), [""; 0]);
}

#[test]
#[ignore = "a measurement: run by name, in a release build"]
fn how_long_ten_thousand_tasks_take() {
    let folder = Folder::new("file-many");
    let store = FileStore::open(file(&folder)).expect("opens");
    let task = |n: u64| Task::new(format!("{n}"), "x".repeat(100)).after(HOUR);
    let clock = SystemClock::new();
    let many = (0..10_000).map(task).collect();
    wait(store.schedule_many(many)).expect("on disk");
    let together = clock.now();
    let few = 200;
    for n in 0..few {
        wait(store.schedule(task(n))).expect("on disk");
    }
    let each = (clock.now() - together) / u32::try_from(few).expect("few");
    println!("10,000 together: {together:?}; one by one: {each:?} each");
    assert!(together < Duration::from_secs(60));
}
