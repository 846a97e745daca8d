//! Random clients, and a check of every reply that they receive.
//!
//! An episode is a server with some loops and a dozen clients, set to [`Terms`] that were drawn for
//! it. Each step one client says, sends, reads or breaks something, a loop has a turn, or time
//! passes. After each turn, what the server has done is explained by the [`Model`], and what
//! clients have received is compared with what was written for them: bytes of another client, a
//! missing reply, or one out of order cannot pass.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidewheel_keyspace::Event;
use tidewheel_oracle::Dice;
use tidewheel_resp::Args;

use super::client::{Client, End, show, without_messages};
use super::done::Done;
use super::listener::Listener;
use super::model::{Model, filler, is_script};
use super::recorder::{Ran, Seen};
use super::rig::{Rig, bulk};
use super::talk::{Town, scripts, talk};
use super::terms::{Terms, Victims};
use crate::clients::connection::OUTPUT_SOFT_MARK;
use crate::time::clock;

const CLIENTS: usize = 10;

/// A turn's millisecond, and what shares two readings of the clock around its end: no command
/// begins later, by the server's own reading. A transaction that has begun is finished.
const TURN_MAX_US: u64 = 1_000 + STALE_MAX_US;

/// The most that a command's time may be behind the clock.
const STALE_MAX_US: u64 = 250;

/// A connection's output: its mark, one batch of replies and one big reply beyond it.
const OUTPUT_MAX: usize = OUTPUT_SOFT_MARK + (512 << 10);

/// A connection's input: two reads, with what a vector reserves ahead.
const INPUT_MAX: usize = 512 << 10;

/// The most that memory may exceed `maxmemory`: shards publish their changes in portions, and a
/// command's need is estimated.
const MEMORY_SLACK: u64 = 8 << 10;

/// What the calls of a script bring that has begun to change data, and goes on though memory is
/// full: five times 64 KiB of nothing, behind which SETRANGE writes.
const SCRIPT_BRINGS: u64 = 5 * (64 << 10);

/// A microsecond for each argument, and more for those that walk or copy.
fn price(args: Args<'_>) -> Duration {
    let us = match &args[0] {
        b"KEYS" => 2_000,
        b"APPEND" => 300,
        _ => args.len() as u64,
    };
    Duration::from_micros(us)
}

pub(super) struct World {
    terms: Terms,
    rig: Rig,
    dice: Dice,
    model: Model,
    clients: Vec<Client>,
    listeners: Vec<Listener>,
    /// All events, and how many of them are explained.
    events: Vec<Event>,
    explained: usize,
    /// How many there were before.
    unheard: u64,
    /// What clients call as scripts.
    scripts: Vec<Vec<Vec<u8>>>,
    connects: u64,
    /// The bytes of the longest command.
    heaviest: u64,
    pub(super) done: Done,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let loops = 1 + dice.below(3);
        let terms = Terms::roll(&mut dice);
        let rig = Rig::new(loops, terms.settings());
        if terms.long {
            let rules = rig.server.keyspace.rules();
            rules.long_ns.store(500, Ordering::Relaxed);
        }
        let scripts = scripts(&mut dice);
        let mut world = Self {
            terms,
            scripts,
            rig,
            dice,
            model: Model::new(terms),
            clients: Vec::new(),
            listeners: Vec::new(),
            events: Vec::new(),
            explained: 0,
            unheard: 0,
            connects: 0,
            heaviest: 0,
            done: Done::default(),
        };
        world.fill();
        let server = &world.rig.server;
        world.unheard = server.keyspace.events();
        server.observer.start(server);
        server.observer.set_cost(price);
        for protocol in [&b"2"[..], b"3"] {
            let mut listener = world.connect();
            listener.say(&[b"HELLO", protocol], false);
            listener.say(&[b"PSUBSCRIBE", b"__keyspace@*"], false);
            listener.send(usize::MAX);
            world.listeners.push(Listener::new(listener));
        }
        world.rig.settle();
        for _ in 0..CLIENTS {
            let client = world.connect();
            world.clients.push(client);
        }
        world
    }

    /// Some servers hold many keys, so that a walk over them takes several turns.
    fn fill(&mut self) {
        let early = self.connect();
        // Nobody may evict them: a walk has to meet them all.
        self.model.fillers = match self.terms.max_memory {
            0 => [0, 4_000][self.dice.below(2)],
            _ => 0,
        };
        let names: Vec<_> = (0..self.model.fillers).map(filler).collect();
        for names in names.chunks(1_000) {
            let mut words = vec![&b"MSET"[..]];
            words.extend(names.iter().flat_map(|name| [&name[..], b"v"]));
            self.rig.ask(&early.peer, &bulk(&words));
        }
    }

    /// The time in engine microseconds.
    fn now(&self) -> u64 {
        clock::micros(self.rig.server.clock.now())
    }

    fn connect(&mut self) -> Client {
        self.connects += 1;
        let owner = self.dice.below(self.rig.loops.len());
        let peer = self.rig.connect(owner);
        self.model.connect(self.connects);
        let mut client = Client::new(self.connects, peer, self.now());
        if self.model.asks_password() && !self.dice.once_in(4) {
            client.say(&[b"AUTH", &self.model.password], false);
        }
        client
    }

    pub(super) fn step(&mut self) -> Result<(), String> {
        let at = self.dice.below(self.clients.len());
        match self.dice.below(100) {
            0..25 => {
                if self.terms.passwords {
                    self.replace(at);
                }
                let client = &mut self.clients[at];
                if client.talks() {
                    let town = Town {
                        clients: self.connects,
                        passwords: self.terms.passwords,
                        scripts: &self.scripts,
                    };
                    talk(client, &mut self.dice, town);
                }
            }
            25..50 => {
                let most = 1 << self.dice.below(18);
                let most = 1 + self.dice.below(most);
                self.clients[at].send(most);
            }
            50..85 => {
                let (index, began) = (self.dice.below(self.rig.loops.len()), self.now());
                self.rig.turn(index);
                self.check(began)?;
                self.check_silence(index, began)?;
            }
            85..93 => self.read(at),
            93..98 => {
                let us = self.pass();
                self.rig.advance(Duration::from_micros(us as u64));
            }
            98 => self.make_trouble(at),
            _ => self.replace(at),
        }
        Ok(())
    }

    /// Draws a time in which nothing happens: a moment, or long enough for a silent client to be
    /// closed.
    fn pass(&mut self) -> usize {
        match self.terms.timeout_s > 0 && self.dice.once_in(4) {
            true => self.dice.below(900_000),
            false => self.dice.below(3_000),
        }
    }

    /// A slow reader takes something, or becomes one.
    fn read(&mut self, at: usize) {
        let client = &mut self.clients[at];
        let mut wire = client.peer.wire.borrow_mut();
        if client.slow {
            let (room, write_max) = (self.dice.below(30_000), 1 + self.dice.below(20_000));
            wire.narrow(room, write_max);
        } else if self.dice.once_in(4) {
            client.slow = true;
            wire.narrow(self.dice.below(100), 1 + self.dice.below(50));
        }
        if client.slow && self.dice.once_in(20) {
            client.slow = false;
            wire.narrow(usize::MAX, usize::MAX);
        }
    }

    fn make_trouble(&mut self, at: usize) {
        let client = &mut self.clients[at];
        match self.dice.below(8) {
            0 | 1 => {
                client.end = End::Gone;
                client.peer.wire.borrow_mut().reset();
            }
            2 | 3 => {
                // It may have sent much, and is gone when it is answered.
                client.send(usize::MAX);
                client.end = End::Gone;
                client.peer.wire.borrow_mut().break_writes();
            }
            4 | 5 => client.half_close(),
            _ if client.talks() => {
                let wrong: [&[u8]; 3] = [b"*1\r\n$x\r\n", b"*2\r\n:1\r\n", b"*-x\r\n"];
                client.push(wrong[self.dice.below(3)]);
                client.spoilt = true;
            }
            _ => {}
        }
    }

    /// Lets a new client take the place of one that has left.
    fn replace(&mut self, at: usize) {
        if self.clients[at].peer.is_closed() {
            let client = self.connect();
            self.clients[at] = client;
        }
    }

    /// Explains what the server has done since `began`, and compares it with what has arrived.
    fn check(&mut self, began: u64) -> Result<(), String> {
        let mut turns = BTreeMap::new();
        let now = self.now();
        for client in &mut self.clients {
            client.note_moves(began, now);
        }
        let observer = &self.rig.server.observer;
        self.events.extend(observer.take_events());
        for seen in observer.take() {
            match seen {
                Seen::Closed(id) => {
                    self.done.closed += 1;
                    self.check_closed(id)?;
                    self.model.closed(id);
                }
                Seen::Refused(id) => self.check_refusal(id)?,
                Seen::Ran(mut ran) => {
                    if may_bring_messages(&ran.words[0]) {
                        ran.reply = without_messages(&ran.reply);
                        ran.answer = without_messages(&ran.answer);
                    }
                    self.check_command(&ran).map_err(|why| {
                        format!("client {}: {}: {why}", ran.client, show(&ran.words))
                    })?;
                    if ran.long {
                        continue;
                    }
                    let begins = clock::micros(ran.time);
                    let turn = turns.entry((ran.turn, ran.client));
                    let had = begins.saturating_sub(*turn.or_insert(begins));
                    if had > TURN_MAX_US {
                        return Err(format!("client {} had {had} us", ran.client));
                    }
                }
            }
        }
        let rest = self.explain_until(self.events.len());
        self.model.hear(&rest, self.rig.server.clock.now().tick)?;
        self.check_memory()?;
        self.check_buffers()?;
        for client in &mut self.clients {
            let talker = self.model.talkers.entry(client.id).or_default();
            let checked = client.check(talker);
            checked.map_err(|why| format!("client {}: {why}", client.id))?;
        }
        for listener in &mut self.listeners {
            let heard = listener.listen(&mut self.model, &self.events);
            heard.map_err(|why| format!("listener {}: {why}", listener.client.id))?;
        }
        Ok(())
    }

    /// The next events, up to the one of that number.
    fn explain_until(&mut self, until: usize) -> Vec<Event> {
        let events = self.events[self.explained..until].to_vec();
        self.explained = until;
        self.done.events += events.len() as u64;
        let evicted = events.iter().filter(|event| event.name == "evicted");
        self.done.evicted += evicted.count() as u64;
        events
    }

    fn check_closed(&mut self, id: u64) -> Result<(), String> {
        let (terms, now) = (self.terms, self.now());
        let Some(client) = self.clients.iter_mut().find(|client| client.id == id) else {
            return Ok(());
        };
        let talker = self.model.talkers.entry(id).or_default();
        let killed = talker.killed;
        let checked = client.closed(talker, &terms, now);
        self.done.given_up += u64::from(talker.killed && !killed);
        checked.map_err(|why| format!("client {id}: {why}"))
    }

    /// A loop has had a turn: its clients that are silent are closed.
    fn check_silence(&self, index: usize, began: u64) -> Result<(), String> {
        for client in self
            .clients
            .iter()
            .filter(|client| client.peer.owner == index)
        {
            let talker = &self.model.talkers[&client.id];
            let checked = client.check_silence(talker, &self.terms, began);
            checked.map_err(|why| format!("client {}: {why}", client.id))?;
        }
        Ok(())
    }

    fn check_refusal(&mut self, id: u64) -> Result<(), String> {
        let lacks_password = self.model.lacks_password(id);
        let client = self.clients.iter_mut().find(|client| client.id == id);
        let checked = client.map_or(Ok(()), |client| client.refused(lacks_password));
        checked.map_err(|why| format!("client {id}: {why}"))
    }

    fn check_command(&mut self, ran: &Ran) -> Result<(), String> {
        self.done.commands += 1;
        let weight = ran.words.iter().map(Vec::len).sum::<usize>();
        self.heaviest = self.heaviest.max(weight as u64);
        self.done.bytes += ran.reply.len() as u64;
        self.done.messages += u64::from(ran.words[0] == b"PUBLISH" && ran.answer != b":0\r\n");
        self.done.scripts += u64::from(is_script(&ran.words[0]));
        self.done.denied += u64::from(ran.answer.starts_with(b"-NOAUTH"));
        let stale = clock::micros(ran.clock) - clock::micros(ran.time);
        if stale > STALE_MAX_US {
            return Err(format!("its time is {stale} us old"));
        }
        let listeners = self
            .listeners
            .iter_mut()
            .map(|listener| &mut listener.client);
        let mut all = self.clients.iter_mut().chain(listeners);
        // A client that is not found was closed and replaced, and may have run commands in the same
        // turn.
        if let Some(client) = all.find(|client| client.id == ran.client) {
            client.ran(&ran.words, &ran.reply)?;
        }
        let events = self.explain_until((ran.events - self.unheard) as usize);
        self.model.run(ran, &events)
    }

    /// If all keys may be evicted, the limit holds. Otherwise a command runs as long as the limit
    /// is not exceeded, and may exceed it by itself.
    fn check_memory(&self) -> Result<(), String> {
        let beyond = match self.terms.victims {
            Victims::All => 0,
            Victims::None | Victims::WithDeadline => self.heaviest,
        };
        // A script runs to its end, and may bring more than its call.
        let bodies = self.scripts.iter().map(|script| script[0].len() as u64);
        let brought = bodies.max().unwrap_or(0) + self.terms.max_memory + SCRIPT_BRINGS;
        let most = self.terms.max_memory + MEMORY_SLACK + beyond + brought;
        let used = self.rig.server.keyspace.used_memory();
        if self.terms.max_memory > 0 && used > most {
            return Err(format!(
                "{used} bytes of memory are used, of at most {most}"
            ));
        }
        Ok(())
    }

    fn check_buffers(&mut self) -> Result<(), String> {
        let output_max = match self.terms.output_max {
            0 => OUTPUT_MAX,
            max => max as usize,
        };
        for (i, core) in self.rig.loops.iter_mut().enumerate() {
            let mut sum = 0;
            for conn in core.connections() {
                let held = conn.pending.as_ref().map_or(0, |held| held.bytes.len());
                let output = conn.output.len();
                if held > INPUT_MAX || output > output_max {
                    return Err(format!("{held} bytes of input, {output} of output"));
                }
                sum += conn.accounted;
            }
            let told = self.rig.server.loops[i]
                .client_memory
                .load(Ordering::Relaxed);
            if sum != told {
                return Err(format!(
                    "loop {i} says {told} bytes, its clients hold {sum}"
                ));
            }
        }
        Ok(())
    }

    /// Some time passes, and everything that can be done in it is done.
    fn rest(&mut self) -> Result<(), String> {
        self.rig.advance(Duration::from_millis(200));
        let began = self.now();
        self.rig.settle();
        self.check(began)
    }

    /// Lets everything come to rest, and looks for what is missing.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        for client in &mut self.clients {
            client.send(usize::MAX);
            let mut wire = client.peer.wire.borrow_mut();
            wire.narrow(usize::MAX, usize::MAX);
            // The server notices that a client is gone only when it reads or writes: the reset
            // tells it.
            if client.end == End::Gone {
                wire.reset();
            }
        }
        // Pauses may wait among the commands: each ends in one of the rounds.
        for _ in 0..500 {
            self.rest()?;
            if self.clients.iter().all(Client::is_done) {
                break;
            }
        }
        self.rig.check_records();
        // Keys that were given a deadline last expire.
        self.rest()?;
        self.model.check_all_expired(self.rig.server.clock.now())?;
        for client in &self.clients {
            let talker = &self.model.talkers[&client.id];
            let complete = client.check_complete(talker);
            complete.map_err(|why| format!("client {}: {why}", client.id))?;
        }
        for listener in &self.listeners {
            let complete = listener.check_complete(&self.events);
            complete.map_err(|why| format!("listener {}: {why}", listener.client.id))?;
        }
        Ok(())
    }
}

/// Returns true if messages that wait for a client are sent around the command's reply.
fn may_bring_messages(word: &[u8]) -> bool {
    is_script(word)
        || matches!(
            word,
            b"PUBLISH" | b"UNSUBSCRIBE" | b"PUNSUBSCRIBE" | b"RESET"
        )
}
