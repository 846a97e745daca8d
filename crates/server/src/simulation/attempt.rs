//! One attempt to explain a data command: what it should have answered and changed if some of the
//! unsure keys were gone.

use std::collections::BTreeMap;
use std::rc::Rc;

use tidewheel_resp::{Protocol, Writer, parse_i64};

use super::recorder::Ran;

pub(super) type Name = (u32, Vec<u8>);

/// An event that listeners of a key are owed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) names: Vec<&'static str>,
    /// It may be left out: it is not known whether the key had been removed before.
    pub(super) optional: bool,
}

/// A key's value, and until when it lives.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    value: Rc<Vec<u8>>,
    pub(super) deadline: Option<u64>,
    /// It may be gone already, and its event may have come: under another name, because databases
    /// were swapped, or as what seemed another key's.
    pub(super) doubtful: bool,
}

/// One attempt.
pub(super) struct Attempt<'a> {
    ran: &'a Ran,
    pub(super) keys: BTreeMap<Name, Entry>,
    pub(super) events: Vec<(Name, Event)>,
    db: u32,
    pub(super) out: Writer,
    /// By which events keys may have gone by themselves, and the ones taken for gone.
    ways: BTreeMap<Name, Vec<&'static str>>,
    gone: Vec<Name>,
}

impl Entry {
    pub(super) fn is_dead(&self, tick: u64) -> bool {
        self.deadline.is_some_and(|at| at <= tick)
    }
}

impl<'a> Attempt<'a> {
    /// Attempts to run a command on the keys that it names, of which some are taken for gone.
    pub(super) fn new(
        ran: &'a Ran,
        protocol: Protocol,
        db: u32,
        keys: BTreeMap<Name, Entry>,
        ways: BTreeMap<Name, Vec<&'static str>>,
        gone: Vec<Name>,
    ) -> Self {
        Self {
            ran,
            keys,
            events: Vec::new(),
            db,
            out: Writer::new(protocol),
            ways,
            gone,
        }
    }

    pub(super) fn run(&mut self, word: &[u8]) {
        let ran = self.ran;
        let words = &ran.words;
        match word {
            b"GET" => match self.find(&words[1]) {
                Some(entry) => self.out.bulk(&entry.value),
                None => self.out.null(),
            },
            b"STRLEN" => {
                let len = self.find(&words[1]).map_or(0, |entry| entry.value.len());
                self.out.integer(len as i64);
            }
            b"EXISTS" => {
                let found = self.find(&words[1]).is_some();
                self.out.integer(found.into());
            }
            b"MGET" => {
                self.out.array(words.len() - 1);
                for key in &words[1..] {
                    match self.find(key) {
                        Some(entry) => self.out.bulk(&entry.value),
                        None => self.out.null(),
                    }
                }
            }
            b"SET" => self.set(),
            b"MSET" => {
                for pair in words[1..].chunks(2) {
                    self.put(&pair[0], Rc::new(pair[1].clone()), None);
                    self.event(&pair[0], &["set"], false);
                }
                self.out.ok();
            }
            b"INCR" => self.incr(),
            b"APPEND" => {
                let old = self.find(&words[1]);
                let mut value = old.as_ref().map_or(Vec::new(), |old| old.value.to_vec());
                value.extend_from_slice(&words[2]);
                self.out.integer(value.len() as i64);
                let deadline = old.and_then(|old| old.deadline);
                self.keys
                    .insert(self.name(&words[1]), entry(value, deadline));
                self.event(&words[1], &["append"], false);
            }
            b"DEL" => self.del(),
            b"PEXPIRE" => {
                let deadline = self.deadline(&words[2]);
                let found = self.find(&words[1]);
                self.out.integer(found.is_some().into());
                if let Some(found) = found {
                    self.keys
                        .insert(self.name(&words[1]), Entry { deadline, ..found });
                    self.event(&words[1], &["expire"], false);
                }
            }
            b"PERSIST" => {
                let found = self
                    .find(&words[1])
                    .filter(|found| found.deadline.is_some());
                self.out.integer(found.is_some().into());
                if let Some(found) = found {
                    let deadline = None;
                    self.keys
                        .insert(self.name(&words[1]), Entry { deadline, ..found });
                    self.event(&words[1], &["persist"], false);
                }
            }
            b"PTTL" => {
                let found = self.find(&words[1]);
                let left = found.map_or(-2, |found| found.deadline.map_or(-1, |at| self.left(at)));
                self.out.integer(left);
            }
            b"RENAME" => self.rename(),
            _ => self.out.error("ERR the model does not know it"),
        }
    }

    fn name(&self, key: &[u8]) -> Name {
        (self.db, key.to_vec())
    }

    /// The entry, if it is there for this command. One that is dead for certain is removed by
    /// commands that write.
    fn find(&mut self, key: &[u8]) -> Option<Entry> {
        let name = self.name(key);
        let found = self.keys.get(&name)?;
        let dead = found.is_dead(self.ran.time.tick);
        // A read may leave it where it is, for instance while a pause lasts.
        if dead && !changes(&self.ran.words[0]) {
            return None;
        }
        if dead || self.gone.contains(&name) {
            let doubtful = found.doubtful;
            self.keys.remove(&name);
            let ways = self.ways_of(key);
            self.event(key, &ways, doubtful);
            return None;
        }
        let found = self.keys.get_mut(&name)?;
        // PERSIST answers the same for a key without a deadline and for none.
        found.doubtful &= self.ran.words[0] == b"PERSIST" && found.deadline.is_none();
        Some(found.clone())
    }

    /// How a key may have gone by itself. Which of several that DEL names were there, their number
    /// does not tell.
    fn ways_of(&self, key: &[u8]) -> Vec<&'static str> {
        let mut ways = self.ways.get(&self.name(key)).cloned().unwrap_or_default();
        if self.is_vague() && !ways.is_empty() {
            ways.push("del");
        }
        ways
    }

    fn is_vague(&self) -> bool {
        let unsure = self.ways.values().filter(|ways| !ways.is_empty());
        self.ran.words[0] == b"DEL" && unsure.count() > 1
    }

    /// Puts an entry in the place of what was there.
    fn put(&mut self, key: &[u8], value: Rc<Vec<u8>>, deadline: Option<u64>) {
        if self.find(key).is_some() {
            let ways = self.ways_of(key);
            self.event(key, &ways, true);
        }
        let name = self.name(key);
        self.ways.remove(&name);
        let doubtful = false;
        let entry = Entry {
            value,
            deadline,
            doubtful,
        };
        self.keys.insert(name, entry);
    }

    fn event(&mut self, key: &[u8], names: &[&'static str], optional: bool) {
        if names.is_empty() {
            return;
        }
        let names = names.to_vec();
        self.events
            .push((self.name(key), Event { names, optional }));
    }

    fn deadline(&self, ms: &[u8]) -> Option<u64> {
        let ms = parse_i64(ms).unwrap_or(0) as u64;
        Some(self.ran.time.tick + ms + u64::from(self.ran.time.micros > 0))
    }

    fn left(&self, deadline: u64) -> i64 {
        let now = self.ran.time.tick + u64::from(self.ran.time.micros > 0);
        deadline.saturating_sub(now) as i64
    }

    fn set(&mut self) {
        let words = &self.ran.words;
        let deadline = words.get(4).and_then(|ms| self.deadline(ms));
        self.put(&words[1], Rc::new(words[2].clone()), deadline);
        self.event(&words[1], &["set"], false);
        if deadline.is_some() {
            self.event(&words[1], &["expire"], false);
        }
        self.out.ok();
    }

    fn incr(&mut self) {
        let key = &self.ran.words[1];
        let old = self.find(key);
        let number = old.as_ref().map_or(Some(0), |old| parse_i64(&old.value));
        let Some(number) = number else {
            return self
                .out
                .error("ERR value is not an integer or out of range");
        };
        let deadline = old.and_then(|old| old.deadline);
        let value = (number + 1).to_string().into_bytes();
        self.keys.insert(self.name(key), entry(value, deadline));
        self.event(key, &["incrby"], false);
        self.out.integer(number + 1);
    }

    fn del(&mut self) {
        let mut removed = 0;
        for key in &self.ran.words[1..] {
            let name = self.name(key);
            let doubtful = self.keys.get(&name).is_some_and(|entry| entry.doubtful);
            if self.find(key).is_some() {
                removed += 1;
                self.keys.remove(&name);
                match self.is_vague() {
                    true => self.event(key, &[&self.ways_of(key)[..], &["del"]].concat(), doubtful),
                    false => self.event(key, &["del"], false),
                }
            }
        }
        self.out.integer(removed);
    }

    fn rename(&mut self) {
        let (from, to) = (&self.ran.words[1], &self.ran.words[2]);
        let Some(found) = self.find(from) else {
            return self.out.error("ERR no such key");
        };
        if from != to {
            self.put(to, found.value, found.deadline);
            self.keys.remove(&self.name(from));
            self.event(from, &["rename_from"], false);
            self.event(to, &["rename_to"], false);
        }
        self.out.ok();
    }
}

fn entry(value: Vec<u8>, deadline: Option<u64>) -> Entry {
    let value = Rc::new(value);
    Entry {
        value,
        deadline,
        doubtful: false,
    }
}

/// The keys that a command names.
pub(super) fn keys_of(ran: &Ran, word: &[u8], db: u32) -> Vec<Name> {
    let words = ran.words[1..].iter();
    let keys: Vec<_> = match word {
        b"MGET" | b"DEL" | b"RENAME" => words.collect(),
        b"MSET" => words.step_by(2).collect(),
        _ => words.take(1).collect(),
    };
    keys.into_iter().map(|key| (db, key.clone())).collect()
}

/// Whether a command changes data.
pub(super) fn changes(word: &[u8]) -> bool {
    matches!(
        word,
        b"SET"
            | b"MSET"
            | b"INCR"
            | b"APPEND"
            | b"DEL"
            | b"PEXPIRE"
            | b"PERSIST"
            | b"RENAME"
            | b"PUBLISH"
            | b"FLUSHDB"
            | b"FLUSHALL"
            | b"SWAPDB"
    )
}
