//! Files of a journal of which a byte has changed, or whose end is missing: no job comes back as
//! another one.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use redb::{Database, ReadableTable, TableDefinition};
use tidewheel_scheduler::{
    Change, Clock, Durable, Journal, JournalError, ManualClock, Outcome, Record, RedbJournal,
    Retry, Scheduler, Status, SystemClock,
};

use crate::common::{HOUR, MS, eventually};

const JOBS: u64 = 500;

/// The contents that a journal must have, by id.
type Truth = HashMap<u64, Record<u64, String>>;

fn path(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("damaged-{name}"));
    if directory.exists() {
        fs::remove_dir_all(&directory).expect("ours");
    }
    fs::create_dir_all(&directory).expect("writable");
    directory.join("jobs.redb")
}

fn load(journal: &RedbJournal) -> Result<Vec<Record<u64, String>>, JournalError> {
    journal.load()
}

fn truth(records: Vec<Record<u64, String>>) -> Truth {
    records
        .into_iter()
        .map(|record| (record.id, record))
        .collect()
}

/// Jobs of all kinds: pending, moved, failed, dead, ended; some with values that take several
/// pages.
fn work(path: &Path) -> Durable<u64, String, RedbJournal> {
    let clock = ManualClock::new();
    let journal = RedbJournal::open(path).expect("opens");
    let jobs = Scheduler::<u64, String>::builder().durable(journal);
    let jobs = jobs.retry(Retry::default().attempts(2));
    let jobs = jobs.manual(&clock, |_, run| match run.key % 3 {
        0 => Outcome::Done,
        1 => Outcome::dead("for ever"),
        _ => Outcome::retry_after(HOUR, "not yet"),
    });
    let jobs = jobs.expect("starts");
    let value = |key: u64| match key % 500 {
        7 => format!("{key} ").repeat(2000),
        _ => format!("mail {key} ").repeat(1 + (key % 17) as usize),
    };
    let many = (0..JOBS).map(|key| (key, value(key), if key < 90 { MS } else { HOUR }));
    jobs.set_many(many).expect("on disk");
    clock.advance(MS);
    assert_eq!(jobs.run_due(), 90);
    for key in (100..JOBS).step_by(97) {
        jobs.move_to(&key, 24 * HOUR).expect("on disk");
    }
    for key in (101..JOBS).step_by(41) {
        jobs.remove(&key).expect("on disk");
    }
    jobs.set(JOBS, "the last".to_owned(), HOUR)
        .expect("on disk");
    jobs
}

/// The file as a process that is killed leaves it, and what it holds.
fn killed(path: &Path) -> (Vec<u8>, Truth) {
    let jobs = work(path);
    // Both slots of the header have the same tree: the journal has sealed what was written.
    let root = |bytes: &[u8], slot: usize| bytes[slot + 8..slot + 32].to_vec();
    eventually("the file is sealed", || {
        let bytes = fs::read(path).expect("readable");
        root(&bytes, 64) == root(&bytes, 192)
    });
    let killed = fs::read(path).expect("readable");
    drop(jobs);
    let truth = truth(load(&RedbJournal::open(path).expect("opens")).expect("whole"));
    (killed, truth)
}

fn closed(path: &Path) -> (Vec<u8>, Truth) {
    drop(work(path));
    let closed = fs::read(path).expect("readable");
    let truth = truth(load(&RedbJournal::open(path).expect("opens")).expect("whole"));
    (closed, truth)
}

/// The outcomes of opening damaged files.
#[derive(Debug, Default)]
struct Met {
    /// Nothing of the jobs was damaged.
    whole: u64,
    refused: u64,
    /// Of the refused ones, those of which salvage got nothing.
    nothing: u64,
    /// Jobs in refused files of which salvage got something, and how many of them it got.
    jobs: u64,
    salvaged: u64,
    unnamed: u64,
}

impl Met {
    fn file(&mut self, path: &Path, bytes: &[u8], truth: &Truth, what: &str) {
        fs::write(path, bytes).expect("writable");
        let opened = RedbJournal::open(path).and_then(|journal| load(&journal));
        let refused = match opened {
            Ok(records) => {
                self.whole += 1;
                assert_eq!(records.len(), truth.len(), "{what}: jobs are missing");
                return Self::are_as_written(&records, truth, what);
            }
            Err(refused) => refused.to_string(),
        };
        self.refused += 1;
        assert!(refused.contains("damaged"), "{what}: {refused}");
        let salvaged = RedbJournal::open_salvaging(path);
        let (journal, report) = match salvaged {
            Ok(salvaged) => salvaged,
            Err(error) => {
                println!("{what}: {error}");
                self.nothing += 1;
                assert!(path.exists(), "{what}: the file is gone");
                return;
            }
        };
        let records = load(&journal).expect("whole");
        Self::are_as_written(&records, truth, what);
        let report = report.expect("it was refused");
        assert_eq!(report.whole, records.len() as u64, "{what}");
        // A page that holds something else may look as if it had jobs.
        let missing = truth.len() as u64 - report.whole;
        let unnamed = missing.saturating_sub(report.damaged.len() as u64);
        assert_eq!(
            report.lost.unwrap_or(unnamed),
            unnamed,
            "{what}: {report:?}"
        );
        self.jobs += truth.len() as u64;
        self.salvaged += report.whole;
        self.unnamed += unnamed;
        fs::remove_file(report.aside).expect("it was set aside");
    }

    fn are_as_written(records: &[Record<u64, String>], truth: &Truth, what: &str) {
        for record in records {
            assert_eq!(truth.get(&record.id), Some(record), "{what}");
        }
    }
}

/// The next number of a sequence that looks random.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ (mixed >> 27)
}

/// One byte changed: of the header, of the head of each page in use, and of each such page
/// anywhere.
fn flips(file: &[u8], seed: &mut u64) -> Vec<(usize, u8)> {
    let is_used = |page: &usize| file[*page..page + 4096].iter().any(|byte| *byte != 0);
    let mut places: Vec<usize> = (0..320).step_by(11).chain([9]).collect();
    for page in (4096..file.len()).step_by(4096).filter(is_used) {
        places.push(page + next(seed) as usize % 8);
        places.push(page + next(seed) as usize % 4096);
    }
    let flip = |at| (at, 1 << (next(seed) % 8));
    places.into_iter().map(flip).collect()
}

/// More than a byte: the end is missing, a page is empty, or another page is where it was.
fn wounds(file: &[u8], seed: &mut u64) -> Vec<(Vec<u8>, String)> {
    let pages = file.len() / 4096;
    let mut wounds = Vec::new();
    for _ in 0..12 {
        let length = next(seed) as usize % file.len();
        wounds.push((file[..length].to_vec(), format!("{length} bytes")));
        let (page, other) = (
            1 + next(seed) as usize % (pages - 1),
            next(seed) as usize % pages,
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
    let path = path(name);
    let (whole, truth) = make(&path);
    let mut seed = 7;
    let mut met = Met::default();
    met.file(&path, &whole, &truth, "unchanged");
    assert_eq!(met.whole, 1);
    for (at, change) in flips(&whole, &mut seed) {
        let mut damaged = whole.clone();
        damaged[at] ^= change;
        met.file(&path, &damaged, &truth, &format!("{change:#x} at {at}"));
    }
    println!("{name}, a byte: {} bytes, {met:?}", whole.len());
    assert!(
        met.refused > 30 && met.salvaged * 100 > met.jobs * 99 && met.nothing * 20 < met.refused
    );
    let mut met = Met::default();
    for (damaged, what) in wounds(&whole, &mut seed) {
        met.file(&path, &damaged, &truth, &what);
    }
    println!("{name}, more: {met:?}");
    met
}

#[test]
fn what_changes_in_a_closed_file_changes_no_job() {
    assert!(every_change_is_noticed("closed", closed).refused > 9);
}

#[test]
fn what_changes_in_a_killed_file_changes_no_job() {
    assert!(every_change_is_noticed("killed", killed).refused > 9);
}

#[test]
fn a_damaged_job_is_named_and_set_aside_and_the_others_run() {
    let path = path("named");
    drop(work(&path));
    let whole = truth(load(&RedbJournal::open(&path).expect("opens")).expect("whole"));
    let (id, key) = (whole.values().find(|record| record.key == 200))
        .map(|job| (job.id, job.key))
        .expect("there");
    // As a memory that errs has written it: the page's checksum is right.
    let jobs: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("jobs");
    let database = Database::create(&path).expect("opens");
    let transaction = database.begin_write().expect("writable");
    {
        let mut jobs = transaction.open_table(jobs).expect("opens");
        let mut job = jobs
            .get(id)
            .expect("reads")
            .expect("there")
            .value()
            .to_vec();
        *job.last_mut().expect("it has bytes") ^= 1;
        jobs.insert(id, job.as_slice()).expect("writable");
    }
    transaction.commit().expect("on disk");
    drop(database);

    let journal = RedbJournal::open(&path).expect("its pages are whole");
    let epoch = Journal::<u64, String>::epoch(&journal);
    let refused = load(&journal).expect_err("a job is damaged").to_string();
    assert!(
        refused.contains(&format!("1 of its jobs are damaged, by id {id}:")),
        "{refused}"
    );
    drop(journal);
    let (journal, report) = RedbJournal::open_salvaging(&path).expect("salvaged");
    let report = report.expect("a job is damaged");
    assert_eq!(
        (report.whole, report.lost),
        (whole.len() as u64 - 1, Some(0))
    );
    let damaged: Vec<_> = report
        .damaged
        .iter()
        .map(|job| (job.id, job.key.as_slice()))
        .collect();
    assert_eq!(damaged, [(id, &key.to_le_bytes()[..])]);
    assert!(report.aside.ends_with("jobs.redb.damaged-1"));
    assert!(
        Journal::<u64, String>::epoch(&journal) > epoch,
        "fencing tokens go on growing"
    );
    drop(journal);
    let (journal, report) = RedbJournal::open_salvaging(&path).expect("opens");
    assert_eq!(
        (load(&journal).expect("whole").len(), report),
        (whole.len() - 1, None)
    );
}

#[test]
#[ignore = "a measurement: run by name, in a release build"]
fn how_long_the_opening_of_a_large_file_takes() {
    let path = path("large");
    let journal = RedbJournal::open(&path).expect("opens");
    let due = SystemTime::UNIX_EPOCH;
    for from in (0..1_000_000u64).step_by(10_000) {
        let value = "x".repeat(500);
        let status = Status::at(due);
        let set = |id| Change::Set {
            id,
            key: &7u64,
            value: &value,
            status: &status,
        };
        let changes: Vec<_> = (from..from + 10_000).map(set).collect();
        let appended = journal.append(&changes).expect("written");
        Journal::<u64, String>::wait(&journal, appended).expect("on disk");
    }
    drop(journal);
    let bytes = fs::metadata(&path).expect("there").len();
    let clock = SystemClock::new();
    let journal = RedbJournal::open(&path).expect("opens");
    let opened = clock.now();
    assert_eq!(load(&journal).expect("whole").len(), 1_000_000);
    println!(
        "{bytes} bytes: opened in {opened:?}, and read in {:?}",
        clock.now() - opened
    );
    drop(journal);
    let mut damaged = fs::read(&path).expect("readable");
    let page = (damaged.len() / 3) & !4095;
    damaged[page + 1000] ^= 0xFF;
    damaged[page + 2000] ^= 0xFF;
    fs::write(&path, damaged).expect("writable");
    let started = clock.now();
    let (_, report) = RedbJournal::open_salvaging(&path).expect("salvaged");
    println!("salvaged in {:?}: {report:?}", clock.now() - started);
}
