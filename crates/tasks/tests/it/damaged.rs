//! Files of which a byte has changed, or whose end is missing: no task comes back as another one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redb::{Database, ReadableTable, TableDefinition};
use tidewheel_engines::{Folder, eventually};
use tidewheel_tasks::{
    Ask, Claim, Clock, Due, Failure, FileStore, ManualClock, State, StoreError, SystemClock, Task,
    TaskStore, wait,
};

use crate::common::{EPOCH, MS, Random};

const TASKS: u64 = 500;
const HOUR: Duration = Duration::from_secs(3600);

/// The contents that a store must have: what it says of tasks and letters, by id.
type Truth = BTreeMap<String, String>;

fn truth(store: &FileStore) -> Result<Truth, StoreError> {
    let tasks = wait(store.list(State::Pending, None, None, usize::MAX))?.into_iter();
    let letters = wait(store.dead_letters(usize::MAX))?.into_iter();
    let tasks = tasks.map(|task| (task.id.clone(), format!("{task:?}")));
    let letters = letters.map(|letter| (format!("{} is dead", letter.id), format!("{letter:?}")));
    Ok(tasks.chain(letters).collect())
}

fn open(path: &Path) -> FileStore {
    FileStore::open(path).expect("opens")
}

/// Tasks of all kinds: pending, moved, failed, dead, ended; some with payloads that take several
/// pages.
fn work(path: &Path) -> FileStore {
    let clock = ManualClock::new();
    clock.set_wall(EPOCH);
    let store = FileStore::open_with_clock(path, clock.clone()).expect("opens");
    let payload = |n: u64| match n % 500 {
        7 => format!("{n} ").repeat(2000),
        _ => format!("mail {n} ").repeat(1 + (n % 17) as usize),
    };
    let task = |n: u64| {
        let due = if n < 90 { MS(1) } else { HOUR };
        Task::new(format!("{n:03}"), payload(n)).after(due)
    };
    wait(store.schedule_many((0..TASKS).map(task).collect())).expect("on disk");
    clock.advance(MS(1));
    let claims = wait(store.claim(Ask::new("w", Duration::ZERO, HOUR, 1000))).expect("claims");
    assert_eq!(claims.len(), 90);
    let claims = claims.into_iter().map(Arc::new);
    let (ended, others): (Vec<_>, Vec<_>) =
        claims.partition(|claim| number(claim).is_multiple_of(3));
    wait(store.done(&ended)).expect("on disk");
    for claim in others {
        let failure = match number(&claim) % 3 {
            1 => Failure::dead("for ever"),
            _ => Failure::retry(Due::After(HOUR), "not yet"),
        };
        wait(store.fail(&claim, failure)).expect("on disk");
    }
    for n in (100..TASKS).step_by(97) {
        wait(store.reschedule(&format!("{n:03}"), Due::After(24 * HOUR))).expect("on disk");
    }
    for n in (101..TASKS).step_by(41) {
        wait(store.cancel(&format!("{n:03}"))).expect("on disk");
    }
    let last = Task::new("the last", "").every(HOUR);
    wait(store.schedule(last.after(HOUR))).expect("on disk");
    store
}

fn number(claim: &Claim) -> u64 {
    claim.id.parse().expect("a number")
}

/// The file as a process that is killed leaves it, and what it holds.
fn killed(path: &Path) -> (Vec<u8>, Truth) {
    let store = work(path);
    // Both slots of the header have the same tree: what was written is sealed.
    let root = |bytes: &[u8], slot: usize| bytes[slot + 8..slot + 32].to_vec();
    eventually("the file is sealed", || {
        let bytes = fs::read(path).expect("readable");
        (root(&bytes, 64) == root(&bytes, 192)).then_some(())
    });
    let killed = fs::read(path).expect("readable");
    drop(store);
    let truth = truth(&open(path)).expect("whole");
    (killed, truth)
}

fn closed(path: &Path) -> (Vec<u8>, Truth) {
    drop(work(path));
    let closed = fs::read(path).expect("readable");
    let truth = truth(&open(path)).expect("whole");
    (closed, truth)
}

/// The outcomes of opening damaged files.
#[derive(Debug, Default)]
struct Met {
    /// Nothing of the tasks was damaged.
    whole: u64,
    refused: u64,
    /// Of the refused ones, those of which salvage got nothing.
    nothing: u64,
    /// Tasks in refused files of which salvage got something, and how many of them it got.
    tasks: u64,
    salvaged: u64,
    unnamed: u64,
}

impl Met {
    fn file(&mut self, path: &Path, bytes: &[u8], truth: &Truth, what: &str) {
        fs::write(path, bytes).expect("writable");
        let refused = match FileStore::open(path).and_then(|store| self::truth(&store)) {
            Ok(found) => {
                self.whole += 1;
                assert_eq!(found, *truth, "{what}");
                return;
            }
            Err(refused) => refused.to_string(),
        };
        self.refused += 1;
        assert!(refused.contains("damaged"), "{what}: {refused}");
        let (store, report) = match FileStore::open_salvaging(path) {
            Ok(salvaged) => salvaged,
            Err(error) => {
                println!("{what}: {error}");
                self.nothing += 1;
                assert!(path.exists(), "{what}: the file is gone");
                return;
            }
        };
        let found = self::truth(&store).expect("whole");
        for (id, said) in &found {
            assert_eq!(truth.get(id), Some(said), "{what}");
        }
        let report = report.expect("it was refused");
        assert_eq!(report.whole, found.len() as u64, "{what}");
        // A page that holds something else may look as if it had tasks.
        let missing = truth.len() as u64 - report.whole;
        let unnamed = missing.saturating_sub(report.damaged.len() as u64);
        assert_eq!(
            report.lost.unwrap_or(unnamed),
            unnamed,
            "{what}: {report:?}"
        );
        self.tasks += truth.len() as u64;
        self.salvaged += report.whole;
        self.unnamed += unnamed;
        fs::remove_file(report.aside).expect("it was set aside");
    }
}

/// One byte changed: of the header, of the head of each page in use, and of each such page
/// anywhere.
fn flips(file: &[u8], random: &mut Random) -> Vec<(usize, u8)> {
    let is_used = |page: &usize| file[*page..page + 4096].iter().any(|byte| *byte != 0);
    let mut places: Vec<usize> = (0..320).step_by(11).chain([9]).collect();
    for page in (4096..file.len()).step_by(4096).filter(is_used) {
        places.push(page + random.below(8) as usize);
        places.push(page + random.below(4096) as usize);
    }
    let flip = |at| (at, 1 << random.below(8));
    places.into_iter().map(flip).collect()
}

/// More than a byte: the end is missing, a page is empty, or another page is where it was.
fn wounds(file: &[u8], random: &mut Random) -> Vec<(Vec<u8>, String)> {
    let pages = (file.len() / 4096) as u64;
    let mut wounds = Vec::new();
    for _ in 0..12 {
        let length = random.below(file.len() as u64) as usize;
        wounds.push((file[..length].to_vec(), format!("{length} bytes")));
        let (page, other) = (
            1 + random.below(pages - 1) as usize,
            random.below(pages) as usize,
        );
        let mut empty = file.to_vec();
        empty[page * 4096..][..4096].fill(0);
        wounds.push((empty, format!("page {page} is empty")));
        let mut mixed = file.to_vec();
        mixed.copy_within(other * 4096..(other + 1) * 4096, page * 4096);
        wounds.push((mixed, format!("page {page} is page {other}")));
    }
    wounds
}

fn every_change_is_noticed(name: &str, make: fn(&Path) -> (Vec<u8>, Truth)) -> Met {
    let folder = Folder::new(&format!("damaged-{name}"));
    let path = folder.path().join("tasks.redb");
    let (whole, truth) = make(&path);
    let mut random = Random(7);
    let mut met = Met::default();
    met.file(&path, &whole, &truth, "unchanged");
    assert_eq!(met.whole, 1);
    for (at, change) in flips(&whole, &mut random) {
        let mut damaged = whole.clone();
        damaged[at] ^= change;
        met.file(&path, &damaged, &truth, &format!("{change:#x} at {at}"));
    }
    println!("{name}, a byte: {} bytes, {met:?}", whole.len());
    assert!(
        met.refused > 30 && met.salvaged * 100 > met.tasks * 99 && met.nothing * 20 < met.refused
    );
    let mut met = Met::default();
    for (damaged, what) in wounds(&whole, &mut random) {
        met.file(&path, &damaged, &truth, &what);
    }
    println!("{name}, more: {met:?}");
    met
}

#[test]
fn what_changes_in_a_closed_file_changes_no_task() {
    assert!(every_change_is_noticed("closed", closed).refused > 9);
}

#[test]
fn what_changes_in_a_killed_file_changes_no_task() {
    assert!(every_change_is_noticed("killed", killed).refused > 9);
}

#[test]
fn a_damaged_task_is_named_and_set_aside_and_the_others_run() {
    let folder = Folder::new("damaged-named");
    let path = folder.path().join("tasks.redb");
    drop(work(&path));
    let whole = truth(&open(&path)).expect("whole");
    // As a memory that errs has written it: the page's checksum is right.
    let tasks: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("tasks");
    let database = Database::create(&path).expect("opens");
    let transaction = database.begin_write().expect("writable");
    {
        let mut tasks = transaction.open_table(tasks).expect("opens");
        let rows = tasks.iter().expect("reads").map(|row| row.expect("reads"));
        let rows = rows.map(|(name, row)| (name.value(), row.value().to_vec()));
        let found: Vec<_> = rows
            .filter(|(_, row)| row[12..].starts_with(b"200"))
            .collect();
        let [(name, mut row)] = found.try_into().expect("one");
        *row.last_mut().expect("it has bytes") ^= 1;
        tasks.insert(name, row.as_slice()).expect("writable");
    }
    transaction.commit().expect("on disk");
    drop(database);

    let refused = FileStore::open(&path).expect_err("a task is damaged");
    let refused = refused.to_string();
    assert!(
        refused.contains("1 of its tasks are damaged, \"200\":"),
        "{refused}"
    );
    let (store, report) = FileStore::open_salvaging(&path).expect("salvaged");
    let report = report.expect("a task is damaged");
    assert_eq!(
        (report.whole, report.lost),
        (whole.len() as u64 - 1, Some(0))
    );
    assert_eq!(report.damaged, ["200"]);
    assert!(report.aside.ends_with("tasks.redb.damaged-1"));
    wait(store.schedule(Task::new("near", ""))).expect("on disk");
    let fence = |store: &FileStore| {
        let ask = Ask::new("w", Duration::ZERO, HOUR, 1);
        wait(store.claim(ask)).expect("claims")[0].fence
    };
    let first = fence(&store);
    drop(store);
    let (store, report) = FileStore::open_salvaging(&path).expect("opens");
    assert_eq!(
        (truth(&store).expect("whole").len(), report),
        (whole.len(), None)
    );
    assert!(fence(&store) > first, "fences go on growing");
}

#[test]
#[ignore = "a measurement: run by name, in a release build"]
fn how_long_the_opening_of_a_large_file_takes() {
    let folder = Folder::new("damaged-large");
    let path = folder.path().join("tasks.redb");
    let store = open(&path);
    for from in (0..1_000_000u64).step_by(10_000) {
        let task = |n| Task::new(format!("{n}"), "x".repeat(500)).after(HOUR);
        let tasks = (from..from + 10_000).map(task).collect();
        wait(store.schedule_many(tasks)).expect("on disk");
    }
    drop(store);
    let bytes = fs::metadata(&path).expect("there").len();
    let clock = SystemClock::new();
    let store = open(&path);
    println!("{bytes} bytes: opened and read in {:?}", clock.now());
    assert_eq!(store.len(), 1_000_000);
    drop(store);
    let mut damaged = fs::read(&path).expect("readable");
    let page = (damaged.len() / 3) & !4095;
    damaged[page + 1000] ^= 0xFF;
    damaged[page + 2000] ^= 0xFF;
    fs::write(&path, damaged).expect("writable");
    let started = clock.now();
    let (_, report) = FileStore::open_salvaging(&path).expect("salvaged");
    println!("salvaged in {:?}: {report:?}", clock.now() - started);
}
