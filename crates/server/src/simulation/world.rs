//! Many clients at random, and a check of everything that they are answered.
//!
//! An episode is a server with some loops and a dozen clients. Each step one of them says, sends, reads
//! or breaks something, a loop has a turn, or time passes. After each turn, what the server has done is
//! explained by the [`Model`], and what clients have received is compared with what was written for
//! them: bytes of another client, a missing reply, or one out of order cannot pass.

use std::collections::BTreeMap;
use std::time::Duration;

use tidewheel_resp::Args;

use super::attempt::{Event, Name};
use super::client::{Client, End, show, without_messages};
use super::dice::Dice;
use super::episodes::Done;
use super::model::{Model, filler};
use super::rig::{Rig, bulk};
use super::talk::{Town, talk};
use super::terms::Terms;
use super::witness::{Ran, Seen};
use crate::clock;
use crate::connection::OUTPUT_SOFT_MARK;

const CLIENTS: usize = 10;

/// A turn's millisecond, and what shares two readings of the clock around its end.
const TURN_MAX_US: u64 = 1_500;

/// How far a command's time may be behind the clock.
const STALE_MAX_US: u64 = 250;

/// A connection's output: its mark, one batch of replies and one big reply beyond it.
const OUTPUT_MAX: usize = OUTPUT_SOFT_MARK + (512 << 10);

/// A connection's input: two reads, with what a vector reserves ahead.
const INPUT_MAX: usize = 512 << 10;

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
    /// Those who listen to all events, and how many of each key's they have seen.
    listeners: Vec<(Client, BTreeMap<Name, Places>)>,
    connects: u64,
    pub(super) done: Done,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let loops = 1 + dice.below(3);
        let terms = Terms::roll(&mut dice);
        let rig = Rig::new(loops, terms.settings());
        let mut world = Self {
            terms,
            rig,
            dice,
            model: Model::new(terms),
            clients: Vec::new(),
            listeners: Vec::new(),
            connects: 0,
            done: Done::default(),
        };
        world.fill();
        world.rig.server.witness.watch();
        world.rig.server.witness.charge(price);
        for protocol in [&b"2"[..], b"3"] {
            let mut listener = world.connect();
            listener.say(&[b"HELLO", protocol], false);
            listener.say(&[b"PSUBSCRIBE", b"__keyspace@*"], false);
            listener.send(usize::MAX);
            world.listeners.push((listener, BTreeMap::new()));
        }
        world.rig.settle();
        for _ in 0..CLIENTS {
            let client = world.connect();
            world.clients.push(client);
        }
        world
    }

    /// Some servers hold so many keys that a walk over them takes several turns.
    fn fill(&mut self) {
        let early = self.connect();
        self.model.fillers = [0, 4_000][self.dice.below(2)];
        let names: Vec<_> = (0..self.model.fillers).map(filler).collect();
        for names in names.chunks(1_000) {
            let mut words = vec![&b"MSET"[..]];
            words.extend(names.iter().flat_map(|name| [&name[..], b"v"]));
            self.rig.ask(&early.peer, &bulk(&words));
        }
    }

    fn connect(&mut self) -> Client {
        self.connects += 1;
        let owner = self.dice.below(self.rig.loops.len());
        let peer = self.rig.connect(owner);
        self.model.connect(self.connects);
        let mut client = Client::new(self.connects, peer);
        if self.model.asks_password() && !self.dice.once_in(4) {
            client.say(&[b"AUTH", &self.model.password], false);
        }
        client
    }

    pub(super) fn step(&mut self) -> Result<(), String> {
        let at = self.dice.below(self.clients.len());
        match self.dice.below(100) {
            0..25 => {
                let client = &mut self.clients[at];
                if client.talks() {
                    let town = Town {
                        clients: self.connects,
                        passwords: self.terms.passwords,
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
                let index = self.dice.below(self.rig.loops.len());
                self.rig.turn(index);
                self.check()?;
            }
            85..93 => self.read(at),
            93..98 => {
                let us = self.dice.below(3_000);
                self.rig.advance(Duration::from_micros(us as u64));
            }
            98 => self.make_trouble(at),
            _ => self.replace(at),
        }
        Ok(())
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

    /// Lets somebody new take the place of one who is gone.
    fn replace(&mut self, at: usize) {
        if self.clients[at].peer.is_closed() {
            let client = self.connect();
            self.clients[at] = client;
        }
    }

    /// Explains what the server has done, and compares it with what has arrived.
    fn check(&mut self) -> Result<(), String> {
        let mut turns = BTreeMap::new();
        for seen in self.rig.server.witness.take() {
            match seen {
                Seen::Closed(id) => {
                    self.done.closed += 1;
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
                    let now = clock::micros(ran.clock);
                    let began = *turns.entry((ran.turn, ran.client)).or_insert(now);
                    if now - began > TURN_MAX_US {
                        return Err(format!("client {} had {} us", ran.client, now - began));
                    }
                }
            }
        }
        self.check_buffers()?;
        for client in &mut self.clients {
            let talker = self.model.talkers.entry(client.id).or_default();
            let checked = client.check(talker);
            checked.map_err(|why| format!("client {}: {why}", client.id))?;
        }
        self.check_events()
    }

    fn check_refusal(&mut self, id: u64) -> Result<(), String> {
        let stranger = self.model.is_stranger(id);
        let client = self.clients.iter_mut().find(|client| client.id == id);
        let checked = client.map_or(Ok(()), |client| client.refused(stranger));
        checked.map_err(|why| format!("client {id}: {why}"))
    }

    fn check_command(&mut self, ran: &Ran) -> Result<(), String> {
        self.done.commands += 1;
        self.done.bytes += ran.reply.len() as u64;
        self.done.messages += u64::from(ran.words[0] == b"PUBLISH" && ran.answer != b":0\r\n");
        self.done.denied += u64::from(ran.answer.starts_with(b"-NOAUTH"));
        let stale = clock::micros(ran.clock) - clock::micros(ran.time);
        if stale > STALE_MAX_US {
            return Err(format!("its time is {stale} us old"));
        }
        let listeners = self.listeners.iter_mut().map(|(client, _)| client);
        let mut all = self.clients.iter_mut().chain(listeners);
        // Who was replaced is closed, and may have run commands in the same turn.
        if let Some(client) = all.find(|client| client.id == ran.client) {
            client.ran(&ran.words, &ran.reply)?;
        }
        self.model.run(ran)
    }

    fn check_buffers(&mut self) -> Result<(), String> {
        for (i, core) in self.rig.loops.iter_mut().enumerate() {
            let mut sum = 0;
            for conn in core.connections() {
                let held = conn.held.as_ref().map_or(0, |held| held.bytes.len());
                let output = conn.output.len();
                if held > INPUT_MAX || output > OUTPUT_MAX {
                    return Err(format!("{held} bytes of input, {output} of output"));
                }
                sum += conn.accounted;
            }
            let told = self.rig.server.loops[i]
                .client_memory
                .load(std::sync::atomic::Ordering::Relaxed);
            if sum != told {
                return Err(format!(
                    "loop {i} says {told} bytes, its clients hold {sum}"
                ));
            }
        }
        Ok(())
    }

    /// Events of a key reach every listener in their order.
    fn check_events(&mut self) -> Result<(), String> {
        let tick = self.rig.server.clock.now().tick;
        for (client, seen) in &mut self.listeners {
            let talker = self.model.talkers.entry(client.id).or_default();
            let checked = client.check(talker);
            let events = checked.map_err(|why| format!("listener {}: {why}", client.id))?;
            for event in events {
                self.done.events += 1;
                let (name, what) = read_event(&event)?;
                let places = seen.entry(name.clone()).or_default();
                // Keys expire without being asked for. What is owed already is not the latest entry's.
                if what == "expired" {
                    match places.next(self.model.events_of(&name), &what).1 {
                        Certainty::Owed => {}
                        Certainty::Possible => self.model.doubt(&name, tick),
                        Certainty::Unknown => self.model.expire(&name, tick),
                    }
                }
                let all = self.model.events_of(&name);
                let at = places.last();
                *places = places.next(all, &what).0;
                if places.0.is_empty() {
                    let near = &all[at.saturating_sub(3)..all.len().min(at + 3)];
                    let key = name.1.escape_ascii();
                    return Err(format!(
                        "listener {}: {what} of {} {key} after {at} of {}: {near:?}",
                        client.id,
                        name.0,
                        all.len()
                    ));
                }
            }
        }
        Ok(())
    }

    /// Lets everything come to rest, and looks for what is missing.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        for client in &mut self.clients {
            client.send(usize::MAX);
            let mut wire = client.peer.wire.borrow_mut();
            wire.narrow(usize::MAX, usize::MAX);
            // Who only cannot be written to is not missed before there is something to write.
            if client.end == End::Gone {
                wire.reset();
            }
        }
        // Pauses may wait among the commands: each ends in one of the rounds.
        for _ in 0..500 {
            self.rig.advance(Duration::from_millis(200));
            self.rig.settle();
            self.check()?;
            if self.clients.iter().all(Client::is_done) {
                break;
            }
        }
        // Keys that were given a deadline last expire.
        self.rig.advance(Duration::from_millis(200));
        self.rig.settle();
        self.check()?;
        self.model.expire_all(self.rig.server.clock.now().tick);
        self.check()?;
        for client in &self.clients {
            let talker = &self.model.talkers[&client.id];
            let complete = client.check_complete(talker);
            complete.map_err(|why| format!("client {}: {why}", client.id))?;
        }
        for (client, seen) in &self.listeners {
            for (name, events) in &self.model.events {
                let places = seen.get(name).cloned().unwrap_or_default();
                let missing = places.missing(events);
                if let Some(missing) = missing {
                    return Err(format!(
                        "listener {}: {name:?}: {missing:?} never came",
                        client.id
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Whether messages that wait for a client are put around the command's reply.
fn may_bring_messages(word: &[u8]) -> bool {
    matches!(
        word,
        b"PUBLISH" | b"UNSUBSCRIBE" | b"PUNSUBSCRIBE" | b"RESET"
    )
}

/// The key and what happened to it.
fn read_event(message: &[Vec<u8>]) -> Result<(Name, String), String> {
    let channel = String::from_utf8_lossy(&message[message.len() - 2]);
    let what = String::from_utf8_lossy(&message[message.len() - 1]);
    let parts = channel
        .strip_prefix("__keyspace@")
        .and_then(|rest| rest.split_once("__:"));
    let (db, key) = parts.ok_or_else(|| format!("an event on {channel}"))?;
    let db = db.parse().map_err(|_| format!("an event on {channel}"))?;
    Ok(((db, key.as_bytes().to_vec()), what.into_owned()))
}

/// Where a listener may be among a key's events: some may have been left out, so there may be several.
#[derive(Debug, Clone)]
struct Places(Vec<usize>);

impl Default for Places {
    fn default() -> Self {
        Self(vec![0])
    }
}

impl Places {
    /// Where the listener may be after one more event, and how well the events so far explain it.
    /// Nowhere is left if they do not.
    fn next(&self, events: &[Event], what: &str) -> (Self, Certainty) {
        let mut next = Vec::new();
        let mut certainty = Certainty::Unknown;
        for place in &self.0 {
            for (i, event) in events.iter().enumerate().skip(*place) {
                if event.names.contains(&what) {
                    if !next.contains(&(i + 1)) {
                        next.push(i + 1);
                    }
                    certainty = certainty.max(Certainty::of(event));
                }
                if !event.optional {
                    break;
                }
            }
        }
        (Self(next), certainty)
    }

    /// An event that has to come yet.
    fn missing<'a>(&self, events: &'a [Event]) -> Option<&'a Event> {
        events[self.last()..].iter().find(|event| !event.optional)
    }

    fn last(&self) -> usize {
        self.0.iter().copied().max().unwrap_or(0)
    }
}

/// How well the events that the model knows explain one that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Certainty {
    /// None of them does.
    Unknown,
    /// One that may have been left out does.
    Possible,
    /// One that had to come does.
    Owed,
}

impl Certainty {
    fn of(event: &Event) -> Self {
        if event.optional {
            Self::Possible
        } else {
            Self::Owed
        }
    }
}
