//! Kills the server at any moment, and looks from outside at what is left.
//!
//! Eight clients send as fast as they can (`part.rs`, `client.rs`). Then `kill -9`, a start on the
//! same folder with other threads and shards, and a check (`check.rs`): for each client there must
//! be a beginning of what it has sent, of which the model (`model.rs`) says what it makes. With
//! `always` that beginning has all that was acknowledged. With `everysec` it has what was
//! acknowledged more than 1.1 s before. Shared keys must be what those beginnings make together,
//! and each deadline where it was. Then it goes on with what is there.
//!
//! `TIDEWHEEL_DEEP=1` runs many rounds, `TIDEWHEEL_ROUNDS=N` so many, `TIDEWHEEL_SEED=N` says where
//! to begin. A run cannot be repeated to the letter, since time and threads are real.
//!
//! `folders.rs` has what may be wrong with a log's folder at a start.

mod check;
mod client;
#[cfg(target_os = "linux")]
mod folders;
mod model;
mod part;

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tidewheel_oracle::Dice;

use self::check::{Shared, check_reads, observe, settle};
use self::client::Sent;
use self::model::{Micros, Model, Observed, Span, Unit, ends};
use self::part::{ACCOUNTS, CLIENTS, account_key};
use crate::common::{Client, Reply, Server, now};

/// Rounds on one folder.
const ROUNDS: u64 = 20;
const PROBES: usize = 4;
const PROBE_MS: u64 = 10_000_000;
/// With `everysec`, what was acknowledged so long before a kill is there.
const EVERYSEC: Micros = 1_100_000;

/// When the checker's clock began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Epoch(Instant);

impl Epoch {
    fn now(self) -> Micros {
        self.0.elapsed().as_micros() as Micros
    }
}

/// What was counted.
#[derive(Debug, Default)]
struct Figures {
    rounds: u64,
    acknowledged: u64,
    unanswered: u64,
    reads_of_others: u64,
    /// Acknowledged, and not there: with `everysec` only.
    lost: u64,
    oldest_lost_us: Micros,
    /// By how much a deadline was later than it could be, and earlier.
    late_us: Micros,
    early_us: Micros,
    /// Bases that were written.
    bases: u64,
    /// Servers that were killed while they loaded.
    killed_early: u64,
    restart_us: Micros,
}

/// One folder, and what must be in it.
struct World {
    policy: &'static str,
    folder: PathBuf,
    epoch: Epoch,
    dice: Dice,
    models: Vec<Model>,
    counts: Vec<u64>,
    shared: Shared,
    /// When keys end that were set while nobody else was there.
    probes: Vec<Span>,
    figures: Figures,
}

impl World {
    fn new(policy: &'static str, seed: u64) -> Self {
        let name = format!("tidewheel-killed-{policy}-{}-{seed}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        Self {
            policy,
            folder,
            epoch: Epoch(now()),
            dice: Dice::new(seed),
            models: (0..CLIENTS).map(|_| Model::new()).collect(),
            counts: vec![0; CLIENTS],
            shared: Shared::default(),
            probes: Vec::new(),
            figures: Figures::default(),
        }
    }

    fn start(&mut self) -> Server {
        Server::run(&mut self.program())
    }

    /// Has a server begin to load, and kills it.
    fn start_and_kill(&mut self) {
        let child = self.program().stdout(Stdio::null()).spawn();
        let mut child = child.expect("the server starts");
        thread::sleep(Duration::from_millis(self.dice.below(100)));
        child.kill().expect("it is our child");
        child.wait().expect("it is our child");
        self.figures.killed_early += 1;
    }

    fn program(&mut self) -> Command {
        let threads = (1 + self.dice.below(3_u64)).to_string();
        let shards = (1 << self.dice.below(6_u64)).to_string();
        let min_size = ["64mb", "64mb", "100kb", "20kb"][self.dice.below(4_usize)];
        let mut log = OpenOptions::new();
        let log = log.create(true).append(true);
        let log = log.open(self.folder.join("server.txt"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidewheel"));
        command
            .args(["--port", "any", "--threads", &threads, "--shards", &shards])
            .args(["--save", "", "--appendonly", "yes"])
            .args(["--appendfsync", self.policy])
            .args(["--auto-aof-rewrite-min-size", min_size])
            .arg("--dir")
            .arg(&self.folder)
            .stdin(Stdio::null())
            .stderr(log.expect("a file"));
        command
    }

    /// Runs for a while, kills the server, and checks what the next one has.
    fn round(&mut self) -> Result<(), String> {
        let mut server = self.start();
        if self.shared.accounts.is_empty() {
            self.begin(&mut server.client());
        }
        let port = server.port;
        let epoch = self.epoch;
        let most = if self.policy == "always" { 500 } else { 1_500 };
        let lasts = Duration::from_millis(20 + self.dice.below(most));
        let seeds: Vec<_> = (0..CLIENTS).map(|_| self.dice.number()).collect();
        let counts = &mut self.counts;
        let (sent, told, before, after) = thread::scope(|scope| {
            let listener = scope.spawn(move || client::listen(port, CLIENTS));
            let clients: Vec<_> = (counts.iter_mut().enumerate().zip(seeds))
                .map(|((of, count), seed)| {
                    scope.spawn(move || client::run(port, of, seed, count, epoch))
                })
                .collect();
            thread::sleep(lasts);
            let before = epoch.now();
            server.signal(Signal::KILL);
            server.wait();
            let after = epoch.now();
            let sent: Vec<_> = clients
                .into_iter()
                .map(|one| one.join().expect("no panic"))
                .collect();
            (sent, listener.join().expect("no panic"), before, after)
        });
        if self.dice.below(4) == 0 {
            self.start_and_kill();
        }
        let began = epoch.now();
        let server = self.start();
        self.figures.restart_us = self.figures.restart_us.max(epoch.now() - began);
        self.check(&server, &sent, &told, before, after)?;
        self.figures.rounds += 1;
        Ok(())
    }

    /// What is there before clients come.
    fn begin(&mut self, client: &mut Client) {
        for i in 0..ACCOUNTS {
            client.call(&["SET", &account_key(i), "1000"]);
        }
        for i in 0..PROBES {
            let from = self.epoch.now();
            client.call(&[
                "SET",
                &format!("probe:{i}"),
                "",
                "PX",
                &PROBE_MS.to_string(),
            ]);
            let us = PROBE_MS as Micros * 1_000;
            self.probes.push(Span {
                from: from + us,
                to: self.epoch.now() + us,
            });
        }
        self.shared = Shared::observe(client);
    }

    fn check(
        &mut self,
        server: &Server,
        sent: &[Vec<Sent>],
        told: &[u64],
        before: Micros,
        after: Micros,
    ) -> Result<(), String> {
        let holds = self.policy == "always";
        self.check_probes(&mut server.client())?;
        let port = server.port;
        let seen: Vec<BTreeMap<Unit, Observed>> = (0..CLIENTS)
            .map(|of| observe(port, of, self.epoch))
            .collect();
        let shared = Shared::observe(&mut server.client());
        let mut sides = Vec::new();
        for (of, (model, sent)) in self.models.iter_mut().zip(sent).enumerate() {
            let until = if holds { after } else { before - EVERYSEC };
            let required = (sent.iter())
                .take_while(|one| one.answer.as_ref().is_some_and(|(at, _)| *at <= until))
                .count();
            let included = settle(model, sent, &seen[of], after, required)
                .map_err(|why| format!("client {of}: {why}"))?;
            sides.push((&sent[..], included));
            let is_answered = |one: &&Sent| one.answer.is_some();
            self.figures.acknowledged += sent.iter().filter(is_answered).count() as u64;
            let lost = sent[included.most..].iter().filter(is_answered);
            self.figures.lost += lost.clone().count() as u64;
            for one in lost {
                let at = one.answer.as_ref().map_or(before, |(at, _)| *at);
                self.figures.oldest_lost_us = self.figures.oldest_lost_us.max(before - at);
            }
            self.figures.unanswered +=
                sent.iter().filter(|one| one.answer.is_none()).count() as u64;
        }
        self.shared.check(&shared, &sides, &self.models)?;
        self.figures.reads_of_others += check_reads(&sides, &seen, holds.then_some(told))?;
        self.shared = shared;
        Ok(())
    }

    fn check_probes(&mut self, client: &mut Client) -> Result<(), String> {
        for (i, deadline) in self.probes.iter().enumerate() {
            let from = self.epoch.now();
            let left = client.call(&["PTTL", &format!("probe:{i}")]);
            let at = Span {
                from,
                to: self.epoch.now(),
            };
            let Reply::Integer(left) = left else {
                return Err(format!("{left:?} is no time"));
            };
            let is = ends(at, left);
            self.figures.late_us = self.figures.late_us.max(is.from - deadline.to);
            self.figures.early_us = self.figures.early_us.max(deadline.from - is.to);
            if is.from > deadline.to || is.to < deadline.from {
                return Err(format!(
                    "WRONG: probe {i} ends in {is:?}, not in {deadline:?}"
                ));
            }
        }
        Ok(())
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs so many rounds, with a new folder now and then.
fn run(policy: &'static str, rounds: u64) {
    let rounds = number("TIDEWHEEL_ROUNDS").unwrap_or(rounds);
    let first = number("TIDEWHEEL_SEED").unwrap_or(1);
    let began = now();
    let mut total = Figures::default();
    for folder in 0..rounds.div_ceil(ROUNDS) {
        let seed = first + folder;
        let mut world = World::new(policy, seed);
        for round in 0..ROUNDS.min(rounds - folder * ROUNDS) {
            if let Err(why) = world.round() {
                panic!(
                    "{policy}, TIDEWHEEL_SEED={seed}, round {round}, after {:?}, in {}: {why}",
                    began.elapsed(),
                    world.folder.display()
                );
            }
        }
        let log = fs::read_to_string(world.folder.join("server.txt")).expect("a file");
        world.figures.bases = log.matches("saved to").count() as u64;
        total.add(&world.figures);
        // Only what is right is removed.
        let _ = fs::remove_dir_all(&world.folder);
    }
    println!("{policy}: {total:?} in {:?}", began.elapsed());
}

impl Figures {
    fn add(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.acknowledged += other.acknowledged;
        self.unanswered += other.unanswered;
        self.reads_of_others += other.reads_of_others;
        self.lost += other.lost;
        self.oldest_lost_us = self.oldest_lost_us.max(other.oldest_lost_us);
        self.late_us = self.late_us.max(other.late_us);
        self.early_us = self.early_us.max(other.early_us);
        self.bases += other.bases;
        self.killed_early += other.killed_early;
        self.restart_us = self.restart_us.max(other.restart_us);
    }
}

fn is_deep() -> bool {
    std::env::var_os("TIDEWHEEL_DEEP").is_some_and(|deep| deep == "1")
}

#[test]
fn with_always_what_was_acknowledged_is_there_after_a_kill() {
    run("always", if is_deep() { 500 } else { 6 });
}

#[test]
fn with_everysec_a_beginning_is_there_after_a_kill_that_lacks_a_second_at_most() {
    run("everysec", if is_deep() { 200 } else { 4 });
}
