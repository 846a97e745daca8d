//! Lives of a server on one disk, one after another: steps, faults, crashes, and what is there
//! after each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::channel;
use std::time::Duration;

use tidewheel_keyspace::{NotifyFlags, Policy, Session, SnapshotLimits, resolve};
use tidewheel_log::simulated::{Disk, Faults};
use tidewheel_oracle::Dice;
use tidewheel_resp::{Args, Protocol, Reply, Writer};

use super::super::recorder::Seen;
use super::super::rig::{InMemory, Rig};
use super::Plant;
use super::ledger::{Found, Ledger, Mark};
use super::life::Life;
use super::people::{ACCOUNTS, EACH, Kind, Person, Town};
use crate::config::{Settings, SyncPolicy, key};
use crate::loops::loop_core::LoopCore;
use crate::persistence::preface;
use crate::state::log::{BegunBase, LogRequest, Rolled, Trouble};
use crate::time::clock::{Clock, ManualTime};

const KINDS: [Kind; 9] = [
    Kind::Talker,
    Kind::Talker,
    Kind::Talker,
    Kind::Talker,
    Kind::Talker,
    Kind::Banker,
    Kind::Banker,
    Kind::Listener,
    Kind::Blocker,
];

/// How often something happened.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) crashes: u64,
    pub(super) kills: u64,
    pub(super) commands: u64,
    /// Records that a crash has taken, and those that it has left.
    pub(super) lost: u64,
    pub(super) kept: u64,
    pub(super) bases: u64,
    pub(super) poisoned: u64,
    pub(super) full: u64,
    pub(super) healed: u64,
    /// Recoveries that failed because of the disk.
    pub(super) failed: u64,
    pub(super) evicted: u64,
}

impl Done {
    pub(super) fn add(&mut self, other: &Self) {
        self.crashes += other.crashes;
        self.kills += other.kills;
        self.commands += other.commands;
        self.lost += other.lost;
        self.kept += other.kept;
        self.bases += other.bases;
        self.poisoned += other.poisoned;
        self.full += other.full;
        self.healed += other.healed;
        self.failed += other.failed;
        self.evicted += other.evicted;
    }
}

pub(super) struct World {
    dice: Dice,
    disk: Disk,
    machine: Arc<ManualTime>,
    ledger: Ledger,
    town: Town,
    life: Life,
    policy: SyncPolicy,
    /// Replies wait for so many records at the most.
    held: u64,
    evicts: bool,
    people: Vec<Person>,
    /// People by the numbers of their connections.
    connections: BTreeMap<u64, usize>,
    connects: u64,
    has_faults: bool,
    /// There were faults in this life.
    had_faults: bool,
    /// The thread that writes does a step once in so many times that it could.
    laziness: u64,
    /// The power goes soon.
    is_doomed: bool,
    plant: Plant,
    /// A cut that comes late.
    late: Option<std::sync::mpsc::Sender<Rolled>>,
    pub(super) done: Done,
}

type Outcome<T = ()> = Result<T, String>;

impl World {
    pub(super) fn new(seed: u64, plant: Plant) -> Outcome<Self> {
        let mut dice = Dice::new(seed);
        let disk = Disk::new(!seed);
        let machine = Arc::<ManualTime>::default();
        let (rig, policy, evicts) = server(&mut dice, &machine);
        let life = Life::begin(rig, &disk).map_err(|why| format!("{why:#}"))?;
        let mut world = Self {
            dice,
            disk,
            machine,
            ledger: Ledger::new(),
            town: Town::default(),
            life,
            policy,
            held: 0,
            evicts,
            people: Vec::new(),
            connections: BTreeMap::new(),
            connects: 0,
            has_faults: false,
            had_faults: false,
            laziness: 1,
            is_doomed: false,
            plant,
            late: None,
            done: Done::default(),
        };
        world.settle_down();
        Ok(world)
    }

    /// Clients come.
    fn settle_down(&mut self) {
        let server = &self.life.rig.server;
        server.observer.start(server);
        self.people.clear();
        self.connections.clear();
        if self.dice.once_in(3) {
            // So a walk over all keys takes several turns.
            let us = 1 + self.dice.below(40) as u64;
            server.clock.pass_with_looks(Duration::from_micros(us));
        }
        self.connects = 0;
        self.laziness = [1, 1, 1, 4, 30][self.dice.below(5)];
        self.town.relies_on_replies = self.policy == SyncPolicy::Always;
        self.held = match self.policy {
            SyncPolicy::Always => u64::MAX,
            _ => 0,
        };
        for (at, kind) in KINDS.into_iter().enumerate() {
            let person = self.connect(at, kind);
            self.people.push(person);
        }
    }

    fn connect(&mut self, at: usize, kind: Kind) -> Person {
        let owner = self.dice.below(self.life.rig.loops.len());
        let peer = self.life.rig.connect(owner);
        self.connects += 1;
        self.connections.retain(|_, of| *of != at);
        self.connections.insert(self.connects, at);
        Person::new(kind, peer)
    }

    pub(super) fn step(&mut self) -> Outcome {
        let at = self.dice.below(self.people.len());
        match self.dice.below(100) {
            0..25 => {
                let wall_ms = self.life.rig.server.clock.now().wall_ms();
                let person = &mut self.people[at];
                person.talk(&mut self.dice, &mut self.town, wall_ms);
                let most = 1 << self.dice.below(14);
                person.send(most);
            }
            25..32 => self.people[at].send(usize::MAX),
            32..62 => {
                let index = self.dice.below(self.life.rig.loops.len());
                self.life.rig.turn(index);
                self.hear()?;
            }
            62..78 if self.dice.once_in(self.laziness) => self.life.write(),
            78..82 => self.life.sync(),
            82..87 => self.life.rebase(&mut self.ledger),
            87..94 => {
                let us = match self.dice.below(20) {
                    0 => 1_200_000,
                    n => 150 * n,
                };
                let us = self.dice.below(us + 1) as u64;
                self.machine.advance(Duration::from_micros(us));
            }
            94 => self.life.say_synced(),
            95 => self.break_disk(),
            96 | 97 => self.mend_disk(),
            98 => self.trouble()?,
            _ if self.dice.once_in(6) => return self.crash(),
            _ => {}
        }
        self.plant_step();
        self.note();
        match self.disk.is_off() {
            true => self.crash(),
            false => Ok(()),
        }
    }

    fn note(&mut self) {
        self.ledger.note_taken(&self.life.rig.server);
    }

    /// Explains what the server has done, and compares it with what has arrived.
    fn hear(&mut self) -> Outcome {
        let start = self.ledger.start;
        for seen in self.life.rig.server.observer.take() {
            let Seen::Ran(ran) = seen else { continue };
            self.done.commands += 1;
            let records = start + ran.records;
            match self.connections.get(&ran.client) {
                Some(at) => self.people[*at].ran(&ran, records, &mut self.town),
                None => self.town.ran_late(&ran, records),
            }
        }
        for (at, person) in self.people.iter_mut().enumerate() {
            let needed = person.hear(&mut self.town, self.held);
            let needed = needed.map_err(|why| format!("client {at}: {why}"))?;
            self.ledger.needed = self.ledger.needed.max(needed);
        }
        Ok(())
    }

    fn break_disk(&mut self) {
        let dice = &mut self.dice;
        let mut sometimes = |n| if dice.once_in(2) { n } else { 0 };
        let mut faults = Faults {
            short_writes: sometimes(3),
            failed_writes: sometimes(8),
            failed_syncs: sometimes(6),
            failed_names: sometimes(8),
            ..Faults::default()
        };
        if dice.once_in(3) {
            faults.capacity = Some(dice.below(200_000));
        }
        if self.plant == Plant::HidesFailure {
            faults = Faults {
                failed_syncs: 3,
                hides_failed_syncs: true,
                ..Faults::default()
            };
        }
        self.disk.set_faults(faults);
        (self.has_faults, self.had_faults) = (true, true);
    }

    fn mend_disk(&mut self) {
        let trouble = self.life.rig.server.log.trouble();
        self.done.poisoned += u64::from(trouble == Trouble::NotSynced);
        self.done.full += u64::from(trouble == Trouble::NotWritten);
        self.disk.set_faults(Faults::default());
        self.has_faults = false;
    }

    /// From now on replies wait for the disk.
    fn begin_to_hold(&mut self) -> Outcome {
        self.hear()?;
        self.set_policy(SyncPolicy::Always)?;
        self.held = u64::MAX;
        self.town.relies_on_replies = true;
        Ok(())
    }

    /// From now on no reply waits for the disk, but for those to what was done by now.
    fn end_to_hold(&mut self) -> Outcome {
        self.hear()?;
        self.held = self.ledger.start + self.life.rig.server.keyspace.records();
        self.town.relies_on_replies = false;
        let policy = match self.dice.once_in(2) {
            true => SyncPolicy::EverySecond,
            false => SyncPolicy::Never,
        };
        self.set_policy(policy)
    }

    fn set_policy(&mut self, policy: SyncPolicy) -> Outcome {
        let server = &self.life.rig.server;
        let change = |settings: &mut Settings| -> Outcome {
            settings.sync_policy = policy;
            Ok(())
        };
        let records = server.keyspace.records();
        let follow = |settings: &Settings| server.log.follow(settings, records, &server.loops);
        server.config.change(change, follow)?;
        self.policy = policy;
        Ok(())
    }

    fn trouble(&mut self) -> Outcome {
        match self.dice.below(8) {
            4 if self.policy == SyncPolicy::Always => return self.end_to_hold(),
            4 => return self.begin_to_hold(),
            // A client reads slowly, or goes on.
            5..8 => {
                let wire = &self.people[self.dice.below(KINDS.len())].peer.wire;
                match self.dice.once_in(2) {
                    true => wire
                        .borrow_mut()
                        .narrow(self.dice.below(400), 1 + self.dice.below(60)),
                    false => wire.borrow_mut().narrow(usize::MAX, usize::MAX),
                }
            }
            0 => {
                self.disk.cut_power_after(self.dice.below(60));
                self.is_doomed = true;
            }
            1 => {
                let hours = self.dice.below(4_usize) as i64 - 2;
                self.machine.step_wall(hours * 3_600_000 + 17);
            }
            // A client is gone, and another one takes its place.
            _ => {
                let at = self.dice.below(self.people.len());
                self.people[at].leave(&mut self.town);
                let kind = self.people[at].kind;
                self.people[at] = self.connect(at, kind);
            }
        }
        Ok(())
    }

    /// Everything comes to rest: then the log is well, and all is on disk.
    fn rest(&mut self) -> Outcome {
        self.mend_disk();
        self.life.rig.server.clock.pass_with_looks(Duration::ZERO);
        for person in &self.people {
            person.peer.wire.borrow_mut().narrow(usize::MAX, usize::MAX);
        }
        let mut calm = 0;
        for _ in 0..80 {
            for person in &mut self.people {
                person.send(usize::MAX);
            }
            if self.dice.once_in(2) {
                // The word of what a loop has just seen may come when it looks no more.
                let server = &self.life.rig.server;
                server.log.tell(&server.loops);
            }
            self.life.rig.settle();
            self.hear()?;
            for _ in 0..4 {
                self.life.write();
                self.note();
                self.life.sync();
                self.life.rebase(&mut self.ledger);
            }
            self.life.rig.settle();
            self.hear()?;
            self.nobody_waits()?;
            self.plant_step();
            self.machine.advance(Duration::from_millis(300));
            let server = &self.life.rig.server;
            let is_calm = server.log.trouble() == Trouble::None
                && server.snapshots.background().is_none()
                && (self.policy == SyncPolicy::Never
                    || server.log.on_disk() == server.keyspace.records());
            calm = if is_calm { calm + 1 } else { 0 };
            if calm == 5 {
                break;
            }
        }
        let server = &self.life.rig.server;
        if calm < 5 {
            return Err(format!(
                "it finds no rest: {:?}, {} of {} records on disk",
                server.log.trouble(),
                server.log.on_disk(),
                server.keyspace.records()
            ));
        }
        self.done.healed += 1;
        if self.policy != SyncPolicy::Never {
            self.ledger.needed = self.ledger.start + server.keyspace.records();
        }
        Ok(())
    }

    /// Replies have left if what they wait for is on disk.
    fn nobody_waits(&self) -> Outcome {
        let rig = &self.life.rig;
        let held = rig.server.log.on_disk() < rig.server.keyspace.records();
        let waits = |of: &LoopCore<InMemory>| !of.state.withheld.is_empty();
        match !held && rig.loops.iter().any(waits) {
            true => Err("a reply waits, and all is on disk".to_owned()),
            false => Ok(()),
        }
    }

    /// The process is killed or the power goes, at any moment or at rest; another server begins.
    pub(super) fn crash(&mut self) -> Outcome {
        if !self.is_doomed && !self.disk.is_off() && self.dice.once_in(3) {
            self.rest()?;
        }
        let old = Arc::clone(&self.life.rig.server);
        old.clock.pass_with_looks(Duration::ZERO);
        self.done.bases += old.log.rewrites.load(Relaxed);
        self.done.evicted += old.keyspace.stats(old.clock.now()).evicted;
        let promised = self.ledger.start + old.log.on_disk();
        self.ledger.needed = self.ledger.needed.max(promised);
        self.note();
        let all = self.ledger.start + old.keyspace.records();
        let mut boots = self.disk.is_off() || self.dice.once_in(2);
        let promised = self.ledger.needed;
        if !boots && !self.had_faults && !self.is_doomed {
            // What was written is there.
            self.ledger.needed = self.ledger.needed.max(self.ledger.records());
        }
        self.end_process(boots);
        self.mend_disk();
        let (mark, life) = loop {
            let found = Found::on(&self.disk).map_err(|why| why.to_string())?;
            let mark = self.ledger.compare(&found)?;
            let (rig, policy, evicts) = server(&mut self.dice, &self.machine);
            (self.policy, self.evicts) = (policy, evicts);
            if self.dice.once_in(8) {
                self.disk.cut_power_after(self.dice.below(80));
            }
            match Life::begin(rig, &self.disk) {
                Ok(life) if !self.disk.is_off() => break (mark, life),
                Ok(_) => {}
                Err(_) if self.disk.is_off() => self.done.failed += 1,
                Err(why) => return Err(format!("it cannot be loaded: {why:#}")),
            }
            // Now the disk alone counts.
            self.ledger.needed = promised;
            boots = true;
            self.end_process(true);
        };
        self.life = life;
        self.is_doomed = self.disk.is_armed();
        (self.had_faults, self.late) = (false, None);
        self.check_time(mark, (!boots).then_some(&*old))?;
        self.compare_data()?;
        self.done.lost += all - self.ledger.start;
        self.done.kept += self.ledger.start;
        self.ledger.needed = self.ledger.start;
        self.settle_down();
        Ok(())
    }

    /// Ends the process, and lets some time pass. If the machine `boots`, what was not synced is
    /// lost.
    fn end_process(&mut self, boots: bool) {
        match boots {
            true => {
                self.disk.crash();
                self.machine.boot();
                self.done.crashes += 1;
            }
            false => {
                self.disk.kill();
                self.done.kills += 1;
            }
        }
        let ms = [0, 5, 3_000][self.dice.below(3)];
        self.machine
            .advance(Duration::from_micros(self.dice.below(ms * 1_000 + 1)));
        if self.dice.once_in(4) {
            self.machine
                .step_wall(self.dice.below(4_000_usize) as i64 - 2_000);
        }
        if self.plant == Plant::WrongAnchor {
            self.machine.forget_a_second();
        }
    }

    /// Engine time goes on as if the server had run on; after a start of the machine, as the wall
    /// clock says.
    fn check_time(
        &self,
        mark: Option<Mark>,
        ran_on: Option<&crate::state::server::Server>,
    ) -> Outcome {
        let server = &self.life.rig.server;
        let (now, Some(mark)) = (server.clock.now(), mark) else {
            return Ok(());
        };
        let expected = match ran_on {
            Some(old) => old.keyspace.engine_time(old.clock.now()).tick,
            None => {
                let passed = now.wall_ms().saturating_sub(mark.wall_ms);
                mark.tick + u64::try_from(passed).unwrap_or(0)
            }
        };
        match now.tick.abs_diff(expected) {
            0 | 1 => Ok(()),
            _ => Err(format!(
                "engine time is {} ms off after {:?}",
                i128::from(now.tick) - i128::from(expected),
                ran_on.map(|_| "a kill")
            )),
        }
    }

    fn compare_data(&mut self) -> Outcome {
        let rig = &mut self.life.rig;
        let server = Arc::clone(&rig.server);
        self.ledger.compare_data(&server, &mut rig.long)?;
        server.keyspace.assert_counted();
        let accounts: Vec<String> = (0..ACCOUNTS).map(|n| format!("a{n}")).collect();
        let words: Vec<&str> = std::iter::once("MGET")
            .chain(accounts.iter().map(String::as_str))
            .collect();
        let Reply::Array(balances) = self.call(2, &words) else {
            return Err("no balances".to_owned());
        };
        let number = |reply: &Reply| match reply {
            Reply::Bulk(text) => String::from_utf8_lossy(text).parse::<i64>().unwrap_or(0),
            _ => 0,
        };
        let sum: i64 = balances.iter().map(number).sum();
        if !self.evicts_ever() && sum != 0 && sum != ACCOUNTS as i64 * EACH {
            return Err(format!("the accounts have {sum}: {balances:?}"));
        }
        for (db, queue) in [(0, "q0"), (0, "q1"), (1, "q0"), (1, "q1")] {
            let Reply::Array(elements) = self.call(db, &["LRANGE", queue, "0", "-1"]) else {
                continue;
            };
            for element in elements {
                let Reply::Bulk(text) = element else { continue };
                let text = String::from_utf8_lossy(&text).replace("mark:", "");
                let mark = text.parse().unwrap_or(0);
                if self.town.popped.contains(&mark) {
                    return Err(format!("mark {mark} was given to a client, and is there"));
                }
            }
        }
        Ok(())
    }

    /// True if accounts may have been evicted.
    fn evicts_ever(&self) -> bool {
        self.done.evicted > 0 || self.evicts
    }

    fn call(&mut self, db: u32, words: &[&str]) -> Reply {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let args = Args::from_slices(&words);
        let mut session = Session {
            db,
            ..Session::default()
        };
        let mut out = Writer::new(Protocol::Resp2);
        let rig = &mut self.life.rig;
        let (keyspace, time) = (&rig.server.keyspace, rig.server.clock.now());
        let row = resolve(args).expect("a command");
        keyspace.execute(&mut rig.long, row, &mut session, time, args, &mut out);
        Reply::read(out.as_bytes())
            .expect("valid")
            .expect("whole")
            .0
    }

    /// What a planted fault does besides.
    fn plant_step(&mut self) {
        match self.plant {
            Plant::HoldsNothing => self.life.rig.server.log.plant_no_hold(),
            Plant::LateCut => self.cut_late(),
            _ => {}
        }
    }

    /// Begins a base at one moment, and cuts the records at another one.
    fn cut_late(&mut self) {
        let rig = &mut self.life.rig;
        let server = Arc::clone(&rig.server);
        let alone = rig.long.exclusive();
        match self.late.take() {
            Some(late) if self.dice.once_in(20) => {
                server.log.expect_cut(late);
                server.keyspace.cut_records(&alone, server.clock.now());
            }
            Some(late) => self.late = Some(late),
            None if self.dice.once_in(50) && server.snapshots.background().is_none() => {
                let time = server.clock.now();
                let (late, rolled) = channel();
                let preface = preface(&server, time);
                let limits = SnapshotLimits::of(0);
                let snapshot = server.keyspace.begin_snapshot(&alone, time, limits);
                server.snapshots.begin(snapshot.course(), time.tick);
                server.log.is_rewriting.store(true, Relaxed);
                let begun = BegunBase {
                    snapshot,
                    preface,
                    rolled,
                };
                assert!(server.log.ask(LogRequest::Write(begun)));
                server.nudge_all();
                self.late = Some(late);
            }
            None => {}
        }
    }
}

/// Draws a server.
fn server(dice: &mut Dice, machine: &Arc<ManualTime>) -> (Rig, SyncPolicy, bool) {
    let policy = match dice.below(4) {
        0 => SyncPolicy::EverySecond,
        1 => SyncPolicy::Never,
        _ => SyncPolicy::Always,
    };
    let evicts = dice.once_in(4);
    let mut settings = Settings {
        shards: [1, 2, 8][dice.below(3)],
        databases: 3,
        notify: NotifyFlags::parse(b"KA").expect("classes"),
        append_only: true,
        sync_policy: policy,
        folder: "no/such/folder".to_owned(),
        rewrite_min_size: 20_000,
        max_memory: if evicts { 60_000 } else { 0 },
        max_memory_policy: [Policy::AllKeysLru, Policy::VolatileLru, Policy::VolatileTtl]
            [dice.below(3)],
        ..Settings::default()
    };
    if dice.once_in(4) {
        let row = key("expired-stream").expect("a key of the table");
        (row.set)(&mut settings, "0 gone 200 values 1 gone 50").expect("two streams");
    }
    let seed = u128::from(dice.number()) << 64 | u128::from(dice.number());
    let rig = Rig::without_records(1 + dice.below(3), settings, Clock::on(machine), seed);
    if dice.once_in(4) {
        rig.server.keyspace.rules().long_ns.store(500, Relaxed);
    }
    (rig, policy, evicts)
}
