//! A worker in a process of its own: this test's program, started again.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_engines::eventually;
use tidewheel_tasks::{Claim, NatsStore, PostgresStore, Run, TaskStore, Worker};

use super::{now, runtime};
use crate::common::watched::Watched;

/// Of workers on Postgres.
const LOOKAHEAD: Duration = Duration::from_secs(10);
pub(super) const LEASE: Duration = Duration::from_secs(8);

/// The longest lease of both engines.
pub(super) const LONGEST: Duration = Duration::from_secs(16);

/// The library that makes a process's wall clock wrong.
pub(super) const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// A worker's process. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Child {
    process: std::process::Child,
    command: [String; 3],
    folder: std::path::PathBuf,
    /// The number of times that workers of this number were started.
    starts: u32,
    terms: Terms,
}

/// The settings of a worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) lease: Duration,
    /// The time that a handler takes.
    pub(super) work: Duration,
    /// By how many seconds the wall clock of its process is wrong.
    pub(super) skew: i64,
}

impl Terms {
    pub(super) const USUAL: Self = Self {
        lease: LEASE,
        work: Duration::from_millis(20),
        skew: 0,
    };

    fn text(self) -> String {
        let (lease, work) = (self.lease.as_millis(), self.work.as_millis());
        format!("{lease} {work} {}", self.skew)
    }

    /// The true time, in a process whose clock is wrong.
    fn now(self) -> u64 {
        now().0.saturating_add_signed(-self.skew * 1_000_000)
    }

    /// Those that this process was started with.
    fn read() -> Self {
        let text = std::env::var("TIDEWHEEL_FLEET_TERMS").expect("terms");
        let numbers = text.split(' ').map(|word| word.parse().expect("a number"));
        let numbers: Vec<i64> = numbers.collect();
        let ms = |at: usize| Duration::from_millis(numbers[at].unsigned_abs());
        Self {
            lease: ms(0),
            work: ms(1),
            skew: numbers[2],
        }
    }
}

impl Child {
    pub(super) fn start(engine: &str, url: &str, folder: &Path, number: u32) -> Self {
        Self::start_on(Terms::USUAL, engine, url, folder, number)
    }

    pub(super) fn start_on(
        terms: Terms,
        engine: &str,
        url: &str,
        folder: &Path,
        number: u32,
    ) -> Self {
        let command = [engine.to_owned(), url.to_owned(), format!("{number}")];
        let process = spawn(&command, folder, 0, terms);
        Self {
            terms,
            process,
            command,
            folder: folder.to_owned(),
            starts: 1,
        }
    }

    pub(super) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// The name of what its present process writes down.
    pub(super) fn log(&self) -> String {
        format!("{}-{}", self.command[2], self.starts - 1)
    }

    /// Another one in its place.
    pub(super) fn restart(&mut self) {
        self.kill();
        self.process = spawn(&self.command, &self.folder, self.starts, self.terms);
        self.starts += 1;
    }

    /// SIGSTOP or SIGCONT.
    pub(super) fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Ends it, and returns what it tells about itself.
    pub(super) fn stop(&mut self) -> String {
        drop(self.process.stdin.take());
        eventually("a worker stops", || self.process.try_wait().ok().flatten());
        let name = format!("{}.stats", self.log());
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(command: &[String; 3], folder: &Path, start: u32, terms: Terms) -> std::process::Child {
    let [engine, url, number] = command;
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    if terms.skew != 0 {
        command.env("LD_PRELOAD", FAKETIME);
        command.env("FAKETIME", format!("{:+}s", terms.skew));
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
    command
        .args([
            "fleet::child::worker_of_a_fleet",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("TIDEWHEEL_FLEET", engine)
        .env("TIDEWHEEL_FLEET_TERMS", terms.text())
        .env("TIDEWHEEL_FLEET_URL", url)
        .env(
            "TIDEWHEEL_FLEET_LOG",
            folder.join(format!("{number}-{start}")),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("a worker starts")
}

#[test]
#[ignore = "a worker: the tests of fleets start it"]
fn worker_of_a_fleet() {
    let Ok(engine) = std::env::var("TIDEWHEEL_FLEET") else {
        return;
    };
    let url = std::env::var("TIDEWHEEL_FLEET_URL").expect("an address");
    let runtime = runtime();
    match &*engine {
        "nats" => work(runtime.block_on(nats(&url, 3))),
        _ => work(
            runtime
                .block_on(PostgresStore::connect(&url, "fleet"))
                .expect("a connection"),
        ),
    }
}

/// A store on all nodes.
pub(super) async fn nats(urls: &str, replicas: usize) -> NatsStore {
    let builder = NatsStore::builder("fleet")
        .replicas(replicas)
        .lease(LONGEST);
    let urls: Vec<_> = urls.split(',').map(str::to_owned).collect();
    // Its nodes may be electing leaders: as a program would, it tries again.
    super::persist(|| builder.clone().connect(urls.clone())).await
}

/// Works until standard input ends.
fn work(store: impl TaskStore) {
    let log = std::env::var("TIDEWHEEL_FLEET_LOG").expect("a log");
    let terms = Terms::read();
    let file = Arc::new(Mutex::new(File::create(&log).expect("a file")));
    let claims = Arc::clone(&file);
    let store = Watched(store, move |claim: &mut Claim| {
        note_claim(&claims, claim, terms);
    });
    let worker = Worker::builder(store).name(&log).threads(64);
    let worker = worker.lookahead(LOOKAHEAD).lease(terms.lease);
    let worker = worker.start(move |run| note(&file, run, terms));
    let worker = worker.expect("a worker");
    let _ = std::io::stdin().read_line(&mut String::new());
    // The engine learns of the last ends.
    for _ in 0..200 {
        if worker.stats().held > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let stats = format!("{:?}\n", worker.stats());
    std::fs::write(format!("{log}.stats"), stats).expect("a file");
    let stopped = worker.stop(Duration::from_secs(5));
    assert_eq!(stopped.left, 0);
}

/// One line a claim: its task, its fence, when it came, and which delivery it is, if the engine
/// counts them.
fn note_claim(file: &Mutex<File>, claim: &Claim, terms: Terms) {
    let delivery = claim.receipt.split('.').nth(4).unwrap_or("0");
    let (id, fence, at) = (&claim.id, claim.fence.0, terms.now());
    write(file, &format!("claim {id} {fence} {at} {delivery}\n"));
}

/// One line a run.
fn note(file: &Mutex<File>, run: &Run, terms: Terms) {
    let (at, id, fence, due) = (terms.now(), run.id(), run.fence().0, run.due().0);
    write(file, &format!("run {id} {fence} {due} {at}\n"));
    std::thread::sleep(terms.work);
}

/// In one write: a kill cuts off the last line at most.
fn write(file: &Mutex<File>, line: &str) {
    let mut file = file.lock().expect("no panic");
    file.write_all(line.as_bytes()).expect("written");
}
