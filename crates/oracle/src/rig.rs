//! A keyspace, one client, and clocks that the fuzzer turns.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use crate::background::Background;
use crate::draw::spell;
use crate::replay::Replica;
use crate::script::{Given, Script};
use crate::shell::Shell;
use crate::step::Step;
use tidewheel_keyspace::rows::Flags;
use tidewheel_keyspace::{
    Begun, Command, ExpiredStream, Keyspace, NotifyFlags, Options, PackedLimit, Reach, Seat,
    Served, Session, Stats, Ticket, Time, Transaction, Unfinished, Waiter, Watching, is_run_here,
    resolve,
};
use tidewheel_resp::{Args, Limits, Parsed, Parser, Protocol, Reply, Writer};

/// The wall clock stays within these, in milliseconds.
const WALL_MIN: i64 = 1_000_000_000;
const WALL_MAX: i64 = 100_000_000_000_000;
const WALL_START: i64 = 1_700_000_000_000;

/// Steps from one beginning of a snapshot in the background to the next one at the least.
const STEPS_BETWEEN_SNAPSHOTS: usize = 40;

/// What a command of a transaction has done.
#[derive(Debug)]
pub(crate) enum Done {
    Reply(Reply),
    /// The commands of a script.
    Script(Vec<Ran>),
}

/// The words of a command, and its reply.
pub(crate) type Ran = (Vec<Vec<u8>>, Reply);

/// A keyspace under test.
#[derive(Debug)]
pub struct Rig {
    /// The keyspace.
    pub keyspace: Keyspace,
    seat: Seat,
    session: Session,
    parser: Parser,
    protocol: Protocol,
    served: Arc<Mutex<Vec<Served>>>,
    /// Clients that wait, by id.
    tickets: BTreeMap<u64, Arc<Ticket>>,
    clients: u64,
    /// What its records make.
    replica: Replica,
    /// A snapshot that is being taken in the background.
    background: Option<Background>,
    micros: u64,
    wall_ms: i64,
    frozen_at: Option<u64>,
    /// Ticks that engine time is behind the clock.
    behind: u64,
}

impl Rig {
    /// An empty keyspace that announces everything, with a client that speaks `protocol`.
    pub fn new(protocol: Protocol, shards: usize) -> Self {
        let options = Options {
            shards,
            databases: 16,
            seed: 7,
        };
        let shell = Shell::default();
        let served = Arc::clone(&shell.served);
        let keyspace = Keyspace::new(options, Box::new(shell));
        keyspace.set_notify_flags(NotifyFlags::from_bits(u32::MAX));
        let mut seat = keyspace.seat();
        keyspace.start_recording(&seat.exclusive());
        Self {
            seat,
            keyspace,
            replica: Replica::new(shards),
            background: None,
            session: Session::default(),
            parser: Parser::new(),
            protocol,
            served,
            tickets: BTreeMap::new(),
            clients: 0,
            micros: 1000 << 40,
            wall_ms: WALL_START,
            frozen_at: None,
            behind: 0,
        }
    }

    /// Panics unless what was recorded makes the same data.
    pub fn check_records(&mut self) {
        let mut records = Vec::new();
        self.keyspace.take_records(&mut records);
        self.replica.replay(&records);
        let clock = self.time();
        let times = (clock, self.keyspace.engine_time(clock));
        self.replica.compare(&self.keyspace, &mut self.seat, times);
    }

    /// Panics unless a file that all data was saved to makes the same data.
    pub fn check_snapshot(&mut self) {
        let clock = self.time();
        let engine = self.keyspace.engine_time(clock);
        let shards = self.keyspace.shards();
        let mut loaded = Replica::of_snapshot(&self.keyspace, &mut self.seat, clock, shards);
        loaded.compare(&self.keyspace, &mut self.seat, (clock, engine));
    }

    /// Begins a snapshot in the background now and then, or walks on over a shard. Panics unless
    /// the file makes the data that there was at its beginning.
    pub fn walk_background(&mut self, chance: usize) {
        let clock = self.time();
        let Some(background) = &mut self.background else {
            if !chance.is_multiple_of(STEPS_BETWEEN_SNAPSHOTS) {
                return;
            }
            let begun = Background::begin(&self.keyspace, &mut self.seat, clock);
            self.background = Some(begun);
            return;
        };
        if background.walk(&self.keyspace, &mut self.seat, chance) {
            self.finish_background();
        }
    }

    /// Walks to the end.
    pub fn finish_background(&mut self) {
        if let Some(mut background) = self.background.take() {
            let mut chance = 0;
            while !background.walk(&self.keyspace, &mut self.seat, chance) {
                chance += 1;
            }
            let engine = self.keyspace.engine_time(self.time());
            background.check(self.keyspace.shards(), engine);
        }
    }

    /// Has all databases queue what expires for streams. Nobody appends it.
    pub fn queue_expired(&self) {
        let streams = (0..16).map(|db| ExpiredStream {
            db,
            name: (*b"stream of expired keys").into(),
            max_len: 1,
            values: db % 2 == 0,
        });
        let streams: Vec<_> = streams.collect();
        self.keyspace.set_expired_streams(&streams);
    }

    /// Lets the clocks run.
    pub fn pass(&mut self, micros: u64) {
        let before = self.tick();
        self.micros += micros;
        let ms = i64::try_from(self.tick() - before).unwrap_or(0);
        self.wall_ms = (self.wall_ms + ms).min(WALL_MAX);
    }

    /// Sets the wall clock forward or back.
    pub fn step_wall(&mut self, ms: i64) {
        self.wall_ms = (self.wall_ms + ms).clamp(WALL_MIN, WALL_MAX);
    }

    /// The clock's tick.
    pub fn tick(&self) -> u64 {
        self.micros / 1000
    }

    /// The tick that deadlines are compared with, and whether the clock is beyond its start.
    pub fn engine(&self) -> (u64, bool) {
        match self.frozen_at {
            Some(tick) => (tick, false),
            None => (self.tick() - self.behind, !self.micros.is_multiple_of(1000)),
        }
    }

    /// Ticks that engine time is behind the clock; `None` while it stands still.
    pub fn behind(&self) -> Option<u64> {
        self.frozen_at.is_none().then_some(self.behind)
    }

    /// Wall time in milliseconds.
    pub fn wall_ms(&self) -> i64 {
        self.wall_ms
    }

    /// Stops engine time.
    pub fn freeze(&mut self) {
        if self.frozen_at.is_none() {
            self.command(&[b"EXPIRY".to_vec(), b"FREEZE".to_vec()]);
            self.frozen_at = Some(self.tick() - self.behind);
        }
    }

    /// Lets engine time go on.
    pub fn resume(&mut self) {
        if let Some(tick) = self.frozen_at.take() {
            self.command(&[b"EXPIRY".to_vec(), b"RESUME".to_vec()]);
            self.behind = self.tick() - tick;
        }
    }

    /// Every shard expires at most `budget` keys; true when none has any left that are due.
    pub fn expire(&mut self, budget: u32) -> bool {
        let mut done = true;
        for shard in 0..self.keyspace.shards() {
            let time = self.time();
            let progress = self.keyspace.expire(&mut self.seat, shard, time, budget);
            done &= !progress.backlog;
        }
        done
    }

    /// Expires all that is due.
    pub fn expire_all(&mut self) {
        for _ in 0..10_000 {
            if self.expire(64) {
                return;
            }
        }
        panic!("expiry never ends");
    }

    /// Maintains every shard.
    pub fn maintain(&mut self, budget: u32) {
        for shard in 0..self.keyspace.shards() {
            self.keyspace.maintain(&mut self.seat, shard, budget);
        }
    }

    /// Takes a step, whatever a call answers.
    pub fn step(&mut self, step: &Step) {
        match step {
            Step::Line(line) => {
                self.command(&spell(line, self.wall_ms));
            }
            Step::Limits(n) => self.limit(*n),
            Step::Script(line) => {
                let words = spell(line, self.wall_ms);
                self.script(&words);
            }
            // What else there is needs somebody who knows what to expect.
            Step::Reload(..)
            | Step::Exec { .. }
            | Step::Wait(_)
            | Step::Leave(_)
            | Step::Page(..) => {}
            Step::Moment(us) => self.pass((*us).into()),
            Step::Advance(ms) => self.pass(u64::from(*ms) * 1000),
            Step::Sleep(s) => self.pass(u64::from(*s) * 1_000_000),
            Step::StepWall(ms) => self.step_wall((*ms).into()),
            Step::Expire(budget) => {
                self.expire(u32::from(*budget) + 1);
            }
            Step::Maintain(budget) => self.maintain((*budget).into()),
            Step::Freeze => self.freeze(),
            Step::Resume => self.resume(),
        }
    }

    /// Packed collections become large early, or late.
    fn limit(&mut self, n: u8) {
        // What follows is replayed under the same limits: a HyperLogLog's bytes tell them.
        self.check_records();
        for keyspace in [&self.keyspace, &self.replica.keyspace] {
            limit(keyspace, n);
        }
    }

    /// Another client calls a command that may wait: its id, and the reply unless it waits.
    pub fn wait(&mut self, words: &[&str]) -> (u64, Option<Reply>) {
        self.clients += 1;
        let id = self.clients;
        let waiter = Waiter {
            owner: 0,
            slot: 0,
            id,
        };
        let mut session = Session {
            db: self.session.db,
            waiter: Some(waiter),
            ..Session::default()
        };
        let slices: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let (args, mut out, time) = (
            Args::from_slices(&slices),
            Writer::new(self.protocol),
            self.time(),
        );
        let row = resolve(args).expect("a command");
        let begun = self
            .keyspace
            .begin(&mut self.seat, row, &mut session, time, args, &mut out);
        match begun {
            Some(Unfinished::Waits(ticket)) => {
                self.tickets.insert(id, ticket);
                (id, None)
            }
            Some(other) => panic!("{other:?}"),
            None => (id, Some(only_reply(&out, args))),
        }
    }

    /// One of those who wait goes away: its id.
    pub fn leave(&mut self, at: usize) -> Option<u64> {
        let id = *self.tickets.keys().nth(at)?;
        let ticket = self.tickets.remove(&id)?;
        assert!(ticket.end(), "it was not served");
        let time = self.time();
        self.keyspace.leave(&mut self.seat, time, &ticket);
        Some(id)
    }

    /// Who was served since the last call, and with what. Those that were handed back run first.
    pub fn served(&mut self) -> Vec<(u64, Reply)> {
        let mut all = Vec::new();
        loop {
            let served = std::mem::take(&mut *self.served.lock().expect("no panic"));
            if served.is_empty() {
                return all;
            }
            for one in served {
                all.extend(self.take(one));
            }
        }
    }

    fn take(&mut self, served: Served) -> Option<(u64, Reply)> {
        let time = self.time();
        let (ticket, reply) = match served {
            Served::Reply { ticket, reply, .. } => (ticket, reply),
            Served::Retry(ticket) => {
                let mut out = Writer::new(ticket.protocol);
                let ran = self.keyspace.retry(&mut self.seat, time, &ticket, &mut out);
                ran?;
                (ticket, out)
            }
        };
        let id = ticket.waiter.id;
        assert!(
            !ticket.end() && self.tickets.remove(&id).is_some(),
            "served once"
        );
        self.keyspace.leave(&mut self.seat, time, &ticket);
        let (whole, used) = Reply::read(reply.as_bytes())
            .expect("valid")
            .expect("whole");
        assert_eq!(used, reply.len(), "one reply");
        Some((id, whole))
    }

    /// What the keyspace tells of itself.
    pub fn stats(&self) -> Stats {
        self.keyspace.stats(self.time())
    }

    /// Watches keys of the client's database.
    pub fn watch(&mut self, keys: &[Vec<u8>]) -> Watching {
        let (mut watching, time, db) = (Watching::default(), self.time(), self.session.db);
        for key in keys {
            let watched = self
                .keyspace
                .watch(&mut self.seat, time, db, key, &mut watching);
            watched.expect("nobody else is there");
        }
        watching
    }

    /// Runs commands as one transaction; `None` if a watched key has changed.
    pub(crate) fn transact(
        &mut self,
        watching: Watching,
        commands: &[Vec<Vec<u8>>],
    ) -> Option<Vec<Done>> {
        let slices: Vec<Vec<&[u8]>> = commands
            .iter()
            .map(|words| words.iter().map(Vec::as_slice).collect())
            .collect();
        let calls: Vec<_> = slices
            .iter()
            .map(|words| Args::from_slices(words))
            .map(|args| (resolve(args).expect("a command"), args))
            .collect();
        let (time, db, mut out) = (self.time(), self.session.db, Writer::new(self.protocol));
        self.seat.enter();
        let begun = self.keyspace.transaction(
            &mut self.seat,
            time,
            db,
            calls.iter().copied(),
            &watching,
            commands.iter().any(|words| is_script(words)),
        );
        let begun = begun.expect("memory has no limit");
        let mut scripts = Vec::new();
        let ran = matches!(begun, Begun::Runs(_));
        if let Begun::Runs(mut transaction) = begun {
            for ((row, args), words) in calls.into_iter().zip(commands) {
                if is_script(words) {
                    let (seat, at) = (&mut self.seat, (time, self.session.clone()));
                    let ran = run_script(&self.keyspace, seat, at, words, Reach::Whole);
                    scripts.push(ran.expect("it has everything"));
                } else {
                    transaction.run(row, &mut self.session, args, &mut out);
                }
            }
            transaction.end(&mut self.seat, time, &mut out);
        }
        self.seat.leave();
        self.keyspace.unwatch(watching);
        let (mut at, mut replies) = (0, Vec::new());
        while let Some((reply, used)) = Reply::read(&out.as_bytes()[at..]).expect("valid") {
            at += used;
            replies.push(reply);
        }
        let (mut scripts, mut replies) = (scripts.into_iter(), replies.into_iter());
        let done = commands.iter().map(|words| match is_script(words) {
            true => Done::Script(scripts.next().expect("it has run")),
            false => Done::Reply(replies.next().expect("one to each command")),
        });
        let done = ran.then(|| done.collect());
        assert_eq!(replies.next(), None, "one to each command");
        done
    }

    /// Runs a script, given as the words of its call: the commands that it has run, and their
    /// replies. As a server does, it begins with the shards of the declared keys. If it needs more
    /// it begins again, or takes more.
    pub(crate) fn script(&mut self, words: &[Vec<u8>]) -> Vec<Ran> {
        let mut reach = Reach::Keys;
        loop {
            self.seat.enter();
            let (time, session) = (self.time(), self.session.clone());
            let ran = run_script(
                &self.keyspace,
                &mut self.seat,
                (time, session),
                words,
                reach,
            );
            self.seat.leave();
            match ran {
                Ok(ran) => return ran,
                Err(more) => reach = more,
            }
        }
    }

    /// Events published since the last call.
    pub fn events(&self) -> Vec<tidewheel_keyspace::Event> {
        let mut events = Vec::new();
        self.keyspace.drain_events(&mut |event| events.push(event));
        assert!(!self.keyspace.events_pending());
        events
    }

    /// Sends a command and reads its reply.
    pub fn command(&mut self, words: &[Vec<u8>]) -> Reply {
        let mut replies = self.replies(words);
        assert_eq!(replies.len(), 1, "one command, one reply: {replies:?}");
        replies.remove(0)
    }

    /// Sends a command that may be one for a server, which is answered by nobody here.
    pub fn replies(&mut self, words: &[Vec<u8>]) -> Vec<Reply> {
        let mut bytes = Writer::new(Protocol::Resp2);
        bytes.array(words.len());
        words.iter().for_each(|word| bytes.bulk(word));
        self.bytes(bytes.as_bytes())
    }

    /// Sends bytes, whatever they are, and reads the replies of the commands in them.
    ///
    /// A command that only a server can run is answered by nobody.
    pub fn bytes(&mut self, mut bytes: &[u8]) -> Vec<Reply> {
        let mut replies = Vec::new();
        loop {
            match self.parser.parse(bytes, &Limits::DEFAULT) {
                Ok(Parsed::Incomplete { .. }) => break,
                Err(error) => {
                    replies.push(Reply::Error(error.to_string()));
                    break;
                }
                Ok(Parsed::Complete { consumed }) => {
                    let args = self.parser.args(bytes);
                    if !args.is_empty() {
                        let time = self.time();
                        let mut out = Writer::new(self.protocol);
                        let (seat, session) = (&mut self.seat, &mut self.session);
                        run(&self.keyspace, seat, session, time, args, &mut out);
                        if !out.is_empty() {
                            replies.push(only_reply(&out, args));
                        }
                    }
                    bytes = &bytes[consumed..];
                }
            }
        }
        // The bytes after an error or an unfinished command are gone, as the connection would be.
        self.parser = Parser::new();
        replies
    }

    fn time(&self) -> Time {
        let tick = self.tick();
        let wall_offset_ms = self.wall_ms - i64::try_from(tick).unwrap_or(i64::MAX);
        Time {
            tick,
            micros: (self.micros % 1000) as u32,
            wall_offset_ms,
        }
    }
}

fn is_script(words: &[Vec<u8>]) -> bool {
    words[0].starts_with(b"EVAL")
}

/// Runs a script with so much of the keyspace. The seat is inside.
fn run_script(
    keyspace: &Keyspace,
    seat: &mut Seat,
    (time, mut session): (Time, Session),
    words: &[Vec<u8>],
    reach: Reach,
) -> Result<Vec<Ran>, Reach> {
    let script = Script::of(&words[1]).expect("a script");
    let given = Given::of(&words[2..], words[0].ends_with(b"_RO")).expect("its keys");
    let keys = given.keys.iter().map(Vec::as_slice);
    let begun = keyspace.script(seat, time, reach, keys);
    let Begun::Runs(mut transaction) = begun else {
        panic!("nobody else is there: {begun:?}");
    };
    let (mut ran, mut more, mut acted) = (Vec::new(), None, false);
    script.run(given, &mut |words| {
        let slices: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let args = Args::from_slices(&slices);
        let row = resolve(args).expect("a command");
        if more.is_some() {
            return Reply::Error("ERR again".to_owned());
        }
        if let Some(lacks) = lacks(&mut transaction, row, args, !acted) {
            // What it has changed before cannot be changed again.
            more = (!acted).then_some(lacks);
            return Reply::Error("ERR out of reach".to_owned());
        }
        acted |= row.flags.has(Flags::WRITE);
        let mut out = Writer::new(Protocol::Resp2);
        transaction.call(row, &mut session, args, &mut out);
        let reply = only_reply(&out, args);
        ran.push((words.to_vec(), reply.clone()));
        reply
    });
    let mut nothing = Writer::default();
    transaction.end(seat, time, &mut nothing);
    assert!(nothing.is_empty(), "each call has answered");
    more.map_or(Ok(ran), Err)
}

/// What a script lacks for a call. It takes more shards if it cannot begin again.
fn lacks(
    transaction: &mut Transaction<'_>,
    row: &Command,
    args: Args<'_>,
    begins: bool,
) -> Option<Reach> {
    let lacks = transaction.lacks(row, args)?;
    if begins || lacks == Reach::Whole || row.reaches_others() {
        return Some(lacks);
    }
    assert!(transaction.lock_more(row, args), "nobody else is there");
    assert_eq!(transaction.lacks(row, args), None);
    None
}

fn run(
    keyspace: &Keyspace,
    seat: &mut Seat,
    session: &mut Session,
    time: Time,
    args: Args<'_>,
    out: &mut Writer,
) {
    match resolve(args) {
        Err(error) => error.write(out),
        Ok(row) if is_run_here(row) => keyspace.execute(seat, row, session, time, args, out),
        Ok(_) => {}
    }
}

/// The reply in `out`, which must hold exactly one.
fn only_reply(out: &Writer, args: Args<'_>) -> Reply {
    match Reply::read(out.as_bytes()) {
        Ok(Some((reply, used))) if used == out.len() => reply,
        other => panic!(
            "{args:?} answered {other:?}: {}",
            out.as_bytes().escape_ascii()
        ),
    }
}

fn limit(keyspace: &Keyspace, n: u8) {
    let packing = &keyspace.rules().packing;
    let entries = [2, 5, 12, 128][usize::from(n % 4)];
    let value = [4, 64][usize::from(n / 4 % 2)];
    let limit = PackedLimit { entries, value };
    for of in [&packing.hash, &packing.set, &packing.zset] {
        of.set(limit);
    }
    packing
        .intset_entries
        .store(u64::from(entries) * 2, Relaxed);
    packing
        .hll_sparse_bytes
        .store([0, 40, 3_000][usize::from(n / 8 % 3)], Relaxed);
    packing.set_list([2, -1, 5, -2][usize::from(n % 4)]);
}
