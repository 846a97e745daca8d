//! Durable tasks: across a `kill -9`, a stop, a move and a set during the handler.

use std::collections::{HashMap, HashSet};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use tidewheel_scheduler::{Clock, Durable, DurableRun, RedbJournal, Scheduler, SystemClock};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(60);
const TASKS: u64 = 400;
const CHILD_DIR: &str = "TIDEWHEEL_TEST_DIR";

type Tasks = Durable<u64, String, RedbJournal>;

/// An empty directory of the test's own.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        std::fs::remove_dir_all(&path).expect("ours");
    }
    std::fs::create_dir_all(&path).expect("writable");
    path
}

fn start(
    directory: &Path,
    handler: impl Fn(DurableRun<u64, String>) + Send + Sync + 'static,
) -> Tasks {
    let journal = RedbJournal::open(directory.join("journal")).expect("opens");
    let builder = Scheduler::builder();
    Durable::start(builder, journal, move |_, run| handler(run)).expect("starts")
}

fn recorded(directory: &Path) -> (Tasks, Receiver<(u64, String, u64)>) {
    let (ran, runs) = channel();
    let tasks = start(directory, move |run| {
        // Nobody listens any more at the end of a test.
        drop(ran.send((run.key, run.value, run.token)));
    });
    (tasks, runs)
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let clock = SystemClock::new();
    while !holds() {
        assert!(clock.now() < PATIENCE, "never: {what}");
        thread::yield_now();
    }
}

/// Key and token of the runs that a child wrote down.
fn written_runs(directory: &Path) -> Vec<(u64, u64)> {
    let text = std::fs::read_to_string(directory.join("runs")).unwrap_or_default();
    // The last line may be cut off.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let number = |text: &str| text.parse().expect("a number");
    whole
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(key, token)| (number(key), number(token)))
        .collect()
}

#[test]
#[ignore = "the process that the next test kills"]
fn a_child_that_is_killed() {
    let Some(directory) = std::env::var_os(CHILD_DIR).map(PathBuf::from) else {
        return;
    };
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(directory.join("runs"))
        .expect("writable");
    let tasks = start(&directory, move |run| {
        let line = format!("{} {}\n", run.key, run.token);
        (&file).write_all(line.as_bytes()).expect("writable");
    });
    thread::scope(|scope| {
        for first in 0..8 {
            let tasks = &tasks;
            scope.spawn(move || {
                for key in (first..TASKS).step_by(8) {
                    // Half of them soon, half of them after the parent has lost its patience.
                    let delay = if key % 2 == 0 {
                        Duration::from_micros(key * 250)
                    } else {
                        HOUR
                    };
                    let old = tasks
                        .set(key, format!("value {key}"), delay)
                        .expect("on disk");
                    assert_eq!(old, None);
                }
            });
        }
    });
    // All are on disk: bring those that lie far within reach of the restart, some of them not.
    for key in (1..TASKS).step_by(4) {
        assert!(tasks.move_to(&key, 500 * MS).expect("on disk"));
    }
    for key in (3..TASKS).step_by(8) {
        assert!(tasks.remove(&key).expect("on disk").is_some());
    }
    println!("\nall set");
    loop {
        thread::park();
    }
}

#[test]
fn tasks_that_were_on_disk_run_at_least_once_after_kill_9() {
    let directory = directory("kill");
    let mut child = Command::new(std::env::current_exe().expect("known"))
        .args([
            "--exact",
            "durable::a_child_that_is_killed",
            "--ignored",
            "--nocapture",
        ])
        .env(CHILD_DIR, &directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let all_set = output
        .lines()
        .map_while(Result::ok)
        .any(|line| line == "all set");
    // SIGKILL, on Unix.
    child.kill().expect("ours");
    child.wait().expect("ours");
    assert!(all_set, "the child failed");

    let before = written_runs(&directory);
    let (tasks, runs) = recorded(&directory);
    let is_far = |key: u64| key % 4 == 3;
    let mut missing: HashSet<u64> = (0..TASKS).filter(|key| !is_far(*key)).collect();
    for (key, _) in &before {
        missing.remove(key);
    }
    let last_token = before.iter().map(|(_, token)| *token).max().unwrap_or(0);
    while !missing.is_empty() {
        let (key, value, token) = runs.recv_timeout(PATIENCE).expect("every task runs");
        assert_eq!(value, format!("value {key}"));
        assert!(
            token > last_token,
            "a token of the dead process is not below"
        );
        assert!(!is_far(key), "a task an hour away ran");
        missing.remove(&key);
    }
    for key in (0..TASKS).filter(|key| is_far(*key)) {
        let is_removed = key % 8 == 3;
        assert_eq!(tasks.get(&key).is_none(), is_removed, "task {key}");
    }
}

#[test]
fn what_has_run_does_not_run_again_after_a_stop() {
    let directory = directory("stop");
    let (tasks, runs) = recorded(&directory);
    for key in 0..20 {
        let delay = if key < 10 { MS } else { HOUR };
        tasks.set(key, String::new(), delay).expect("on disk");
    }
    for _ in 0..10 {
        runs.recv_timeout(PATIENCE).expect("ten run");
    }
    let stopped = tasks.stop(PATIENCE);
    assert_eq!((stopped.pending.len(), stopped.running), (10, 0));
    drop(tasks);
    let (tasks, runs) = recorded(&directory);
    assert_eq!(tasks.stats().pending, 10);
    let left = tasks.get(&15).expect("pending");
    assert!(left <= HOUR + 2 * MS && left > HOUR / 2, "{left:?}");
    assert!(runs.try_recv().is_err());
}

#[test]
fn a_replaced_task_is_one_task_after_a_restart() {
    let directory = directory("replace");
    let (tasks, _runs) = recorded(&directory);
    tasks.set(1, "old".to_owned(), HOUR).expect("on disk");
    let old = tasks.set(1, "new".to_owned(), HOUR).expect("on disk");
    assert_eq!(old.as_deref(), Some("old"));
    assert!(tasks.move_to(&1, MS * 20).expect("on disk"));
    assert!(!tasks.move_to(&2, MS).expect("nothing to write"));
    drop(tasks);
    let (_tasks, runs) = recorded(&directory);
    let (key, value, _) = runs.recv_timeout(PATIENCE).expect("it is due");
    assert_eq!((key, value.as_str()), (1, "new"));
    assert!(runs.recv_timeout(100 * MS).is_err(), "it ran twice");
}

#[test]
fn tokens_grow_from_run_to_run_and_from_start_to_start() {
    let directory = directory("tokens");
    let mut last = HashMap::new();
    for _ in 0..3 {
        let (tasks, runs) = recorded(&directory);
        for _ in 0..5 {
            tasks
                .set(1, String::new(), Duration::ZERO)
                .expect("on disk");
            let (key, _, token) = runs.recv_timeout(PATIENCE).expect("runs");
            assert!(last.insert(key, token).is_none_or(|before| before < token));
        }
        tasks.stop(PATIENCE);
        eventually("the run has ended", || tasks.stats().completed == 5);
    }
}

#[test]
fn a_task_that_was_cut_off_and_the_one_that_its_handler_set_both_run() {
    let directory = directory("cut-off");
    let journal = RedbJournal::open(directory.join("journal")).expect("opens");
    let (set, is_set) = channel();
    let tasks = Durable::start(
        Scheduler::<u64, _>::builder().workers(1),
        journal,
        move |tasks, run: DurableRun<u64, String>| {
            tasks
                .set(run.key, "second".to_owned(), HOUR)
                .expect("on disk");
            set.send(()).expect("the test lives");
            // As if the process died here: its end never reaches the journal.
            while set.send(()).is_ok() {
                thread::park();
            }
        },
    )
    .expect("starts");
    tasks
        .set(1, "first".to_owned(), Duration::ZERO)
        .expect("on disk");
    is_set.recv_timeout(PATIENCE).expect("the handler runs");
    tasks.stop(Duration::ZERO);
    // The file is locked while the handler hangs, so what a crash would leave is copied.
    let copy = directory.join("copy");
    std::fs::create_dir(&copy).expect("writable");
    std::fs::copy(directory.join("journal"), copy.join("journal")).expect("copied");
    let (tasks, runs) = recorded(&copy);
    let (_, value, _) = runs.recv_timeout(PATIENCE).expect("it runs again");
    assert_eq!(value, "first");
    assert!(
        tasks.get(&1).is_some_and(|left| left > HOUR / 2),
        "the second is pending"
    );
}
