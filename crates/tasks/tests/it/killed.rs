//! A process with tasks in a file is killed again and again, at any moment. A task that it has
//! accepted comes to an end, a cancelled one does not run, and fences rise.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_engines::{Folder, eventually};
use tidewheel_tasks::{FileStore, Run, Task, TaskStore, Worker, wait};

use crate::common::{MS, Random};

const KILLS: u64 = 12;

#[test]
fn a_killed_process_loses_no_task_of_its_file_and_its_fences_rise() {
    let (folder, mut random) = (Folder::new("killed"), Random(7));
    for round in 0..KILLS {
        let mut child = start(folder.path(), round);
        std::thread::sleep(MS(30 + random.below(250)));
        child.kill().expect("it ran");
        child.wait().expect("it has ended");
    }
    let mut last = start(folder.path(), KILLS);
    eventually("all that was kept has run", || {
        let log = Log::read(folder.path());
        (log.lost().is_empty() && log.kept.len() > 50).then_some(())
    });
    drop(last.stdin.take());
    assert!(last.wait().expect("it ends").success());
    let log = Log::read(folder.path());
    log.check();
    let runs: usize = log.runs.values().map(Vec::len).sum();
    println!("{} tasks kept, {runs} runs", log.kept.len());
}

fn start(folder: &Path, round: u64) -> std::process::Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["killed::process_with_a_file", "--exact", "--ignored"])
        .env("TIDEWHEEL_KILLED", folder)
        .env("TIDEWHEEL_ROUND", round.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("a process starts")
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
    let log = Arc::new(Mutex::new(log.expect("a log")));
    let store = FileStore::open(folder.join("tasks"));
    let store = Arc::new(store.expect("a file"));
    let runs = Arc::clone(&log);
    let worker = Worker::builder(Arc::clone(&store)).threads(2);
    let worker = worker.start(move |run: &Run| note(&runs, "run", run.id(), run.fence().0));
    let worker = worker.expect("a worker");
    if round != KILLS.to_string() {
        fill(&store, &log, &round);
    }
    let _ = std::io::stdin().read_line(&mut String::new());
    let _ = worker.stop(Duration::from_secs(5));
}

/// Keeps tasks one by one and many at a time, and cancels some of them long before they are due.
fn fill(store: &FileStore, log: &Mutex<File>, round: &str) {
    for n in 0..500 {
        let name = |what: &str, part: u64| format!("{round}-{n}-{what}-{part}");
        let task = |what, part| Task::new(name(what, part), "payload").after(MS(n % 40));
        wait(store.schedule(task("one", 0))).expect("kept");
        note(log, "kept", &name("one", 0), 0);
        let many = (0..5).map(|part| task("many", part)).collect();
        wait(store.schedule_many(many)).expect("kept");
        (0..5).for_each(|part| note(log, "kept", &name("many", part), 0));
        let far = Task::new(name("far", 0), "").after(Duration::from_secs(2));
        wait(store.schedule(far)).expect("kept");
        assert_eq!(wait(store.cancel(&name("far", 0))), Ok(true));
        note(log, "cancelled", &name("far", 0), 0);
    }
}

/// In one write: a kill cuts off no line.
fn note(log: &Mutex<File>, what: &str, id: &str, fence: u64) {
    let mut log = log.lock().expect("no panic");
    let line = format!("{what} {id} {fence}\n");
    log.write_all(line.as_bytes()).expect("written");
}

/// The records that the processes have written.
#[derive(Default)]
struct Log {
    kept: BTreeSet<String>,
    cancelled: BTreeSet<String>,
    /// Fences, in the order of the runs.
    runs: BTreeMap<String, Vec<u64>>,
}

impl Log {
    fn read(folder: &Path) -> Self {
        let text = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        let mut log = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["kept", id, _] => {
                    log.kept.insert(id.to_owned());
                }
                ["cancelled", id, _] => {
                    log.cancelled.insert(id.to_owned());
                }
                ["run", id, fence] => {
                    let fence = fence.parse().expect("a fence");
                    log.runs.entry(id.to_owned()).or_default().push(fence);
                }
                _ => panic!("a line that is none: {line}"),
            }
        }
        log
    }

    fn lost(&self) -> Vec<&String> {
        let kept = self.kept.iter();
        kept.filter(|id| !self.runs.contains_key(*id)).collect()
    }

    fn check(&self) {
        assert_eq!(self.lost(), [""; 0]);
        for (id, fences) in &self.runs {
            assert!(!self.cancelled.contains(id), "{id} was cancelled");
            let rises = fences.windows(2).all(|two| two[0] < two[1]);
            assert!(rises, "{id} ran under {fences:?}");
        }
    }
}
