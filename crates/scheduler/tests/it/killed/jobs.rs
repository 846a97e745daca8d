//! A job system that is killed again and again: mails are accepted, sent, retried and acknowledged,
//! and nothing is lost.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::Duration;

use tidewheel_scheduler::{
    Clock, Durable, DurableRun, Outcome, RedbJournal, Retry, Scheduler, SystemClock,
};

const PATIENCE: Duration = Duration::from_secs(120);
/// Mails that are accepted with one wait for the disk.
const BATCH: u64 = 20;
/// Numbers of one process do not meet those of the next.
const PER_LIFE: u64 = 1_000_000;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;
type Jobs = Durable<u64, String, RedbJournal>;

/// A file to which whole lines are appended: what a receiver of mails would remember.
fn ledger(directory: &Path, name: &str) -> Result<File, Failure> {
    let path = directory.join(name);
    Ok(OpenOptions::new().create(true).append(true).open(path)?)
}

/// The whole lines of a ledger, as numbers.
fn lines(directory: &Path, name: &str) -> Vec<Vec<u64>> {
    let text = std::fs::read_to_string(directory.join(name)).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let numbers = |line: &str| line.split(' ').filter_map(|n| n.parse().ok()).collect();
    whole.lines().map(numbers).collect()
}

/// Starts sending what the journal holds.
fn start(directory: &Path) -> Result<Jobs, Failure> {
    let sent = ledger(directory, "sent")?;
    let is_repaired = directory.join("repaired");
    let journal = RedbJournal::open(directory.join("journal"))?;
    let retry = Retry::default().attempts(4).base(Duration::from_millis(5));
    let builder = Scheduler::builder().workers(4).durable(journal);
    Ok(builder.retry(retry).start(move |_, run| {
        // Some fail at first, some panic (here without a message on the terminal), some are given
        // up.
        match (run.key % 7, run.key % 11, run.key % 13, run.attempt) {
            (0, _, _, 1) => Outcome::failed("the server does not answer"),
            (_, _, 0, 1) => resume_unwind(Box::new("a bug")),
            (1, 1, _, _) if !is_repaired.exists() => Outcome::dead("no such address"),
            (_, 0, _, _) => {
                send_elsewhere(sent.try_clone(), run);
                Outcome::Done
            }
            _ => send(&sent, &run),
        }
    })?)
}

/// The mail is gone when the line is written. If the process dies before the job's end is on disk,
/// it is sent again.
fn send(mut sent: &File, run: &DurableRun<u64, String>) -> Outcome {
    let line = format!("{} {} {}\n", run.key, run.token, run.attempt);
    match sent.write_all(line.as_bytes()) {
        Ok(()) => Outcome::Done,
        Err(error) => Outcome::failed(error),
    }
}

/// The same on another thread, as on a runtime: the job ends when its `Ack` says so.
fn send_elsewhere(sent: std::io::Result<File>, run: DurableRun<u64, String>) {
    let ack = run.ack();
    thread::spawn(move || match sent {
        Ok(sent) => ack.settle(send(&sent, &run)),
        Err(error) => ack.settle(Outcome::failed(error)),
    });
}

/// Accepts mails for ever: each batch is on disk before it is written down as accepted.
pub(crate) fn serve(directory: &Path) -> Result<(), Failure> {
    let jobs = start(directory)?;
    let mut accepted = ledger(directory, "accepted")?;
    let life = lines(directory, "lives").len() as u64;
    for first in (life * PER_LIFE..).step_by(BATCH as usize) {
        let batch = first..first + BATCH;
        let delay = |number: u64| Duration::from_millis(number % 40);
        jobs.set_many(
            batch
                .clone()
                .map(|number| (number, format!("mail {number}"), delay(number))),
        )?;
        let text: String = batch.map(|number| format!("{number}\n")).collect();
        accepted.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// The outcome of the mails.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) accepted: usize,
    pub(crate) lost: Vec<u64>,
    /// Mails that were sent more than once, and how many of them with a token that is not higher
    /// than before.
    pub(crate) repeated: usize,
    pub(crate) out_of_order: Vec<u64>,
}

/// Starts `child` so many times, kills it each time when it has accepted some more mails, and lets
/// the rest be sent.
pub(crate) fn kill_again_and_again(
    directory: &Path,
    kills: u64,
    mut child: impl FnMut() -> Result<Child, Failure>,
) -> Result<Report, Failure> {
    for kill in 1..=kills {
        writeln!(ledger(directory, "lives")?, "{kill}")?;
        let before = lines(directory, "accepted").len();
        // A different moment each time: after one batch, or after many.
        let more = (kill * 7 % 13 * BATCH + 1) as usize;
        let mut process = child()?;
        let accepted = wait_for(|| {
            let ended = matches!(process.try_wait(), Ok(Some(_)));
            ended || lines(directory, "accepted").len() >= before + more
        });
        // SIGKILL, on Unix.
        process.kill()?;
        let status = process.wait()?;
        accepted?;
        if status.code().is_some() {
            return Err(format!("it ended by itself: {status}").into());
        }
    }
    finish(directory)?;
    Ok(count(directory))
}

/// A start without a kill: an operator repairs the addresses and re-queues the dead letters, and
/// all mails are sent.
fn finish(directory: &Path) -> Result<(), Failure> {
    File::create(directory.join("repaired"))?;
    let jobs = start(directory)?;
    wait_for(|| {
        for letter in jobs.dead_letters() {
            let requeued = jobs.requeue(letter.id, Duration::ZERO);
            assert!(requeued.is_ok(), "{requeued:?}");
        }
        let stats = jobs.stats();
        stats.pending + stats.queued + stats.running + stats.deferred + stats.dead == 0
    })?;
    let stopped = jobs.stop(PATIENCE);
    stopped.journal?;
    Ok(())
}

fn wait_for(mut holds: impl FnMut() -> bool) -> Result<(), Failure> {
    let clock = SystemClock::new();
    while !holds() {
        if clock.now() > PATIENCE {
            return Err("it takes too long".into());
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Compares what was accepted with what was sent.
fn count(directory: &Path) -> Report {
    let mut report = Report::default();
    let mut tokens: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for line in lines(directory, "sent") {
        tokens.entry(line[0]).or_default().push(line[1]);
    }
    for (number, tokens) in &tokens {
        report.repeated += usize::from(tokens.len() > 1);
        if !tokens.is_sorted_by(|before, after| before < after) {
            report.out_of_order.push(*number);
        }
    }
    for line in lines(directory, "accepted") {
        report.accepted += 1;
        if !tokens.contains_key(&line[0]) {
            report.lost.push(line[0]);
        }
    }
    report
}

/// An empty directory.
pub(crate) fn empty(directory: PathBuf) -> Result<PathBuf, Failure> {
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}
