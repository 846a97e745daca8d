//! A process with tasks in a file is killed again and again, at any moment. A task that it has
//! accepted comes to an end, none runs early or again after its end was answered, a cancelled one
//! does not run, fences rise, and a rhythm stays.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_engines::{Folder, eventually};
use tidewheel_tasks::{
    Claim, Clock, FileStore, Outcome, Retry, Run, State, SystemClock, Task, TaskStore, Timestamp,
    Verdict, Worker, wait,
};

use crate::common::watched::{Watch, Watched};
use crate::common::{MS, Random};

/// The rounds of the fast tier, and of the deep one.
const KILLS: u64 = 12;
const MANY_KILLS: u64 = 200;

const PERIOD: Duration = Duration::from_millis(40);

#[test]
fn a_killed_process_loses_no_task_of_its_file_and_ends_each_once() {
    let is_deep = std::env::var_os("TIDEWHEEL_DEEP").is_some();
    let kills = if is_deep { MANY_KILLS } else { KILLS };
    let (folder, mut random) = (Folder::new("killed"), Random(7));
    for round in 0..kills {
        let mut child = start(folder.path(), &round.to_string());
        // While it opens the file, or when so much has happened.
        let until = length(folder.path()) + random.below(8000);
        eventually("it has worked for a while", || {
            (length(folder.path()) >= until).then_some(())
        });
        // SIGKILL, on Unix.
        child.kill().expect("it ran");
        child.wait().expect("it has ended");
    }
    // It ends when nothing is left.
    let mut last = start(folder.path(), LAST);
    assert!(last.wait().expect("it ends").success());
    let log = Log::read(folder.path());
    log.check();
    assert!(log.kept.len() > 50, "too little happens");
    let store = FileStore::open(folder.path().join("tasks")).expect("a file");
    let left = wait(store.list(State::Pending, None, None, 10)).expect("listed");
    let left: Vec<_> = left.iter().map(|task| &*task.id).collect();
    assert_eq!(left, ["tick"], "all others have ended");
    assert_eq!(wait(store.dead_letters(10)), Ok(vec![]));
    println!("{kills} kills: {}", log.figures());
}

/// Bytes of the log.
fn length(folder: &Path) -> u64 {
    std::fs::metadata(folder.join("log")).map_or(0, |log| log.len())
}

/// The round in which nobody kills the process, and it keeps no new tasks.
const LAST: &str = "last";

fn start(folder: &Path, round: &str) -> std::process::Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["killed::process_with_a_file", "--exact", "--ignored"])
        .env("TIDEWHEEL_KILLED", folder)
        .env("TIDEWHEEL_ROUND", round)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process starts")
}

/// The log of all processes, a line for each thing that happened.
#[derive(Clone)]
struct Notes(Arc<Mutex<File>>);

impl Notes {
    /// In one write: a kill cuts off no line.
    fn note(&self, what: &str, id: &str, numbers: &[u64]) {
        let numbers: String = numbers.iter().map(|number| format!(" {number}")).collect();
        let line = format!("{what} {id}{numbers}\n");
        let mut log = self.0.lock().expect("no panic");
        log.write_all(line.as_bytes()).expect("written");
    }
}

/// The name of one run, in all its attempts.
fn run_of(id: &str, began: Timestamp) -> String {
    match id {
        "tick" => format!("tick@{}", began.0),
        id => id.to_owned(),
    }
}

impl Watch for Notes {
    /// The store has answered: the end is on disk.
    fn done(&self, claims: &[Arc<Claim>], verdicts: &[Verdict]) {
        for (claim, verdict) in claims.iter().zip(verdicts) {
            if verdict.is_accepted() {
                let run = run_of(&claim.id, claim.began);
                self.note("ended", &run, &[claim.fence.0]);
            }
        }
    }
}

#[test]
#[ignore = "a process that is killed: another test starts it"]
fn process_with_a_file() {
    let Some(folder) = std::env::var_os("TIDEWHEEL_KILLED") else {
        return;
    };
    let folder = Path::new(&folder);
    let round = std::env::var("TIDEWHEEL_ROUND").expect("a round");
    let mut log = OpenOptions::new();
    let log = log.create(true).append(true).open(folder.join("log"));
    let notes = Notes(Arc::new(Mutex::new(log.expect("a log"))));
    let store = FileStore::open(folder.join("tasks")).expect("a file");
    let store = Arc::new(Watched(store, notes.clone()));
    let retry = Retry::default().base(MS(5)).cap(MS(20));
    let worker = Worker::builder(Arc::clone(&store)).threads(2).retry(retry);
    let (runs, is_last) = (notes.clone(), round == LAST);
    let worker = worker.start(move |run: &Run| end(&runs, run, is_last));
    let worker = worker.expect("a worker");
    if is_last {
        outlive_everything(&store.0);
    } else {
        fill(&*store, &notes, &round);
        let _ = std::io::stdin().read_line(&mut String::new());
    }
    let _ = worker.stop(Duration::from_secs(5));
}

/// An operator has put right what was wrong, and files the dead letters again. What a process was
/// about to cancel when it was killed is cancelled now.
fn outlive_everything(store: &FileStore) {
    let pending = wait(store.list(State::Pending, None, None, 10_000)).expect("listed");
    for task in pending.iter().filter(|task| task.id.ends_with("-far-")) {
        assert_eq!(wait(store.cancel(&task.id)), Ok(true));
    }
    eventually("all that was kept has ended", || {
        let letters = wait(store.dead_letters(1000)).expect("letters");
        for letter in &letters {
            wait(store.requeue(&letter.id, Duration::ZERO.into())).expect("on disk");
        }
        (letters.is_empty() && store.len() == 1).then_some(())
    });
}

/// Notes a run, and ends it in one of all ways.
fn end(notes: &Notes, run: &Run, is_last: bool) -> Outcome {
    let now = Timestamp::from(SystemClock::new().wall());
    let numbers = [run.fence().0, run.due().0, now.0];
    notes.note("run", &run_of(run.id(), run.began()), &numbers);
    let part = run.id().rsplit('-').next().unwrap_or_default();
    match (part, run.attempt()) {
        ("fails", 1) => Outcome::failed("the server does not answer"),
        // Without a message on the terminal.
        ("panics", 1) => resume_unwind(Box::new("a bug")),
        ("dies", _) if !is_last => Outcome::dead("no such address"),
        ("acks", _) => {
            let ack = run.ack();
            std::thread::spawn(move || ack.done());
            Outcome::Done
        }
        _ => Outcome::Done,
    }
}

const PARTS: [&str; 5] = ["runs", "fails", "panics", "dies", "acks"];

/// Keeps tasks one by one and many at a time, and cancels some of them long before a worker would
/// claim them.
fn fill(store: &impl TaskStore, notes: &Notes, round: &str) {
    wait(store.ensure(Task::new("tick", "").every(PERIOD))).expect("kept");
    for n in 0..500 {
        let name = |what: &str, part: &str| format!("{round}-{n}-{what}-{part}");
        let task = |what, part| Task::new(name(what, part), "payload").after(MS(n % 40));
        let one = PARTS[n as usize % PARTS.len()];
        wait(store.schedule(task("one", one))).expect("kept");
        notes.note("kept", &name("one", one), &[]);
        let many = PARTS.map(|part| task("many", part));
        wait(store.schedule_many(many.into())).expect("kept");
        for part in PARTS {
            notes.note("kept", &name("many", part), &[]);
        }
        let far = Task::new(name("far", ""), "").after(Duration::from_secs(60));
        wait(store.schedule(far)).expect("kept");
        assert_eq!(wait(store.cancel(&name("far", ""))), Ok(true));
        notes.note("cancelled", &name("far", ""), &[]);
    }
}

/// What the processes have written.
#[derive(Default)]
struct Log {
    kept: BTreeSet<String>,
    cancelled: BTreeSet<String>,
    /// Fences, in the order of the runs.
    runs: BTreeMap<String, Vec<u64>>,
    ended: BTreeSet<String>,
    /// Due times of the periodic task's runs.
    ticks: BTreeSet<u64>,
    early: Vec<String>,
    after_its_end: Vec<String>,
}

impl Log {
    fn read(folder: &Path) -> Self {
        let text = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        let mut log = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let numbers = words
                .iter()
                .skip(2)
                .map(|word| word.parse().expect("a number"));
            let numbers: Vec<u64> = numbers.collect();
            let id = words[1].to_owned();
            match (words[0], &numbers[..]) {
                ("kept", []) => drop(log.kept.insert(id)),
                ("cancelled", []) => drop(log.cancelled.insert(id)),
                ("ended", [_fence]) => {
                    assert!(log.ended.insert(id), "{line}: it ended before");
                }
                ("run", [fence, due, now]) => log.run(id, *fence, *due, *now),
                _ => panic!("a line that is none: {line}"),
            }
        }
        log
    }

    fn run(&mut self, id: String, fence: u64, due: u64, now: u64) {
        if now < due {
            self.early.push(id.clone());
        }
        if self.ended.contains(&id) {
            self.after_its_end.push(id.clone());
        }
        if let Some(began) = id.strip_prefix("tick@") {
            self.ticks.insert(began.parse().expect("a time"));
        }
        self.runs.entry(id).or_default().push(fence);
    }

    /// Tasks that were kept and never ran.
    fn lost(&self) -> Vec<&String> {
        let kept = self.kept.iter();
        kept.filter(|id| !self.runs.contains_key(*id)).collect()
    }

    fn check(&self) {
        let nobody = Vec::<String>::new();
        assert_eq!(self.lost(), nobody.iter().collect::<Vec<_>>());
        assert_eq!((&self.early, &self.after_its_end), (&nobody, &nobody));
        for (id, fences) in &self.runs {
            assert!(!self.cancelled.contains(id), "{id} was cancelled");
            let rises = fences.windows(2).all(|two| two[0] < two[1]);
            assert!(rises, "{id} ran under {fences:?}");
        }
        let first = self.ticks.first().expect("it ran");
        let period = PERIOD.as_micros() as u64;
        let off = self
            .ticks
            .iter()
            .filter(|due| !(*due - first).is_multiple_of(period));
        assert_eq!(off.count(), 0, "the rhythm stays");
    }

    fn figures(&self) -> String {
        let runs = self.runs.values().map(Vec::len);
        let (runs, again): (usize, usize) =
            runs.fold((0, 0), |all, count| (all.0 + count, all.1 + count - 1));
        format!(
            "{} tasks kept, {} cancelled, {runs} runs, {again} of them again, {} ends answered, {} \
             ticks; lost: {}, early: {}, run after its end: {}",
            self.kept.len(),
            self.cancelled.len(),
            self.ended.len(),
            self.ticks.len(),
            self.lost().len(),
            self.early.len(),
            self.after_its_end.len()
        )
    }
}
