//! A run ends its process each time. It becomes a dead letter, and no other task does.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tidewheel_engines::{Folder, eventually};
use tidewheel_tasks::{FileStore, Retry, Run, Task, TaskStore, Worker, wait};

const ATTEMPTS: u32 = 3;

#[test]
fn a_task_that_ends_its_process_each_time_becomes_a_dead_letter() {
    let folder = Folder::new("poison");
    let log = || std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    // Of the first of these runs nothing is noted.
    for kill in 0..=ATTEMPTS {
        let mut child = start(folder.path());
        let runs = |log: String| log.matches("poison").count();
        eventually("it runs", || (runs(log()) > kill as usize).then_some(()));
        // SIGKILL, on Unix.
        child.kill().expect("it ran");
        child.wait().expect("it has ended");
    }
    let mut last = start(folder.path());
    assert!(last.wait().expect("it ends").success());
    let store = FileStore::open(folder.path().join("tasks")).expect("a file");
    let letters = wait(store.dead_letters(10)).expect("letters");
    assert_eq!(letters.len(), 1, "{letters:?}");
    assert_eq!((&*letters[0].id, letters[0].attempts), ("poison", ATTEMPTS));
    let error = &*letters[0].error;
    assert_eq!(error, "the process ended 3 times while it ran");
    let attempts = log();
    let attempts = attempts
        .lines()
        .filter_map(|line| line.strip_prefix("poison "));
    assert_eq!(attempts.collect::<Vec<_>>(), ["1", "1", "2", "3"]);
    let log = log();
    for n in 0..20 {
        let id = format!("other-{n} ");
        assert!(log.lines().any(|line| line.starts_with(&id)), "{id}: {log}");
    }
}

fn start(folder: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["poison::process_that_is_ended", "--exact", "--ignored"])
        .env("TIDEWHEEL_POISON", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process starts")
}

#[test]
#[ignore = "a process that is killed: another test starts it"]
fn process_that_is_ended() {
    let Some(folder) = std::env::var_os("TIDEWHEEL_POISON") else {
        return;
    };
    let folder = Path::new(&folder).to_owned();
    let is_new = !folder.join("tasks").exists();
    let store = FileStore::open(folder.join("tasks")).expect("a file");
    let store = Arc::new(store);
    // Before there is a worker: a task may run before it is on disk, and would be lost with the
    // kill.
    if is_new {
        let others = (0..20).map(|n| Task::new(format!("other-{n}"), ""));
        let tasks = std::iter::once(Task::new("poison", "")).chain(others);
        wait(store.schedule_many(tasks.collect())).expect("kept");
    }
    let retry = Retry::default().attempts(ATTEMPTS);
    // With one thread, the others wait behind it.
    let worker = Worker::builder(Arc::clone(&store)).threads(1).retry(retry);
    let worker = worker.start(move |run: &Run| {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.join("log"));
        let line = format!("{} {}\n", run.id(), run.attempt());
        log.expect("a log")
            .write_all(line.as_bytes())
            .expect("written");
        if run.id() == "poison" {
            loop {
                std::thread::park();
            }
        }
    });
    let worker = worker.expect("a worker");
    eventually("nothing is left", || store.is_empty().then_some(()));
    let _ = worker.stop(Duration::from_secs(5));
}
