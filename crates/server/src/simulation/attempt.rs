//! One attempt to explain a data command: what it should have answered and changed if some of the
//! unsure keys were gone. The oracle's model runs the command on the others.

use std::collections::{BTreeMap, BTreeSet};

use tidewheel_oracle::{self as oracle, Given, Place, Script};
use tidewheel_resp::{Protocol, Reply, Writer};

use super::recorder::Ran;
use super::talk::WRITES;

/// An event that listeners of a key are owed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) names: Vec<&'static str>,
    /// It may be left out: it is not known whether the key had been removed before.
    pub(super) optional: bool,
}

/// What is stored under a key, and how certain that is.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    of: oracle::Entry,
    /// It may be gone already, and its event may have come: under another name, because databases
    /// were swapped, or as what seemed another key's.
    pub(super) doubtful: bool,
}

/// Keys that a command names, and by which events each may have gone by itself.
pub(super) type Named = BTreeMap<Place, (Entry, Vec<&'static str>)>;

/// One attempt.
pub(super) struct Attempt<'a> {
    ran: &'a Ran,
    db: u32,
    protocol: Protocol,
    named: &'a Named,
    /// The keys that are taken for gone.
    gone: Vec<&'a Place>,
    /// Whether memory is taken for full.
    is_full: bool,
    /// What the command finds, and what it does.
    model: oracle::Model,
}

impl Entry {
    pub(super) fn deadline(&self) -> Option<u64> {
        self.of.deadline()
    }

    pub(super) fn weight(&self) -> usize {
        self.of.weight()
    }

    pub(super) fn is_dead(&self, tick: u64) -> bool {
        self.deadline().is_some_and(|at| at <= tick)
    }
}

impl<'a> Attempt<'a> {
    /// Attempts to run a command on the keys that it names, of which some are taken for gone.
    pub(super) fn new(
        ran: &'a Ran,
        (db, protocol): (u32, Protocol),
        named: &'a Named,
        (gone, is_full): (Vec<&'a Place>, bool),
    ) -> Self {
        let mut model = oracle::Model::default();
        model.is_full(is_full);
        let time = &ran.time;
        let wall_ms = time.tick as i64 + time.wall_offset_ms;
        model.at(time.tick, time.micros > 0, wall_ms);
        model.select(db);
        for (place, (entry, _)) in named {
            if !entry.is_dead(time.tick) && !gone.contains(&place) {
                model.lay(place.clone(), entry.of.clone());
            }
        }
        Self {
            ran,
            db,
            protocol,
            named,
            gone,
            is_full,
            model,
        }
    }

    /// What it should have answered.
    pub(super) fn run(&mut self) -> Writer {
        let expect = self.model.run(&self.ran.words, &Reply::Null);
        expect
            .bytes(self.protocol)
            .expect("nothing is left to chance")
    }

    /// What is stored under a key now, and what has happened to it.
    pub(super) fn effect(&mut self, place: &'a Place) -> (Option<Entry>, Vec<Event>) {
        let (mut events, mut doubtful) = (Vec::new(), false);
        if let Some((entry, ways)) = self.named.get(place) {
            let is_dead = entry.is_dead(self.ran.time.tick);
            let is_gone = is_dead || self.gone.contains(&place);
            // A read may leave a dead key where it is, for instance while a pause lasts.
            let is_left = is_dead && !self.changes(place);
            if is_gone && (is_left || !self.model.has_met(place)) {
                return (Some(entry.clone()), events);
            }
            if is_gone {
                events.push(self.event(place, None));
            } else {
                if self.model.has_replaced(place) && !ways.is_empty() {
                    let (names, optional) = (ways.clone(), true);
                    events.push(Event { names, optional });
                }
                doubtful = entry.doubtful && !self.is_certain_of(place);
            }
        }
        let names = self.model.events_of(place);
        events.extend(names.map(|name| self.event(place, Some(name))));
        let of = self.model.lift(place);
        (of.map(|of| Entry { of, doubtful }), events)
    }

    /// Whether what has run changes a key.
    fn changes(&self, place: &Place) -> bool {
        match &*self.ran.words[0] {
            b"EVAL" | b"EVAL_RO" => self.model.has_changed(place),
            word => changes(word),
        }
    }

    /// Whether something new is there, or the reply would be another one without the key.
    fn is_certain_of(&self, place: &'a Place) -> bool {
        let gone = [&self.gone[..], &[place]].concat();
        let mut without = Self::new(
            self.ran,
            (self.db, self.protocol),
            self.named,
            (gone, self.is_full),
        );
        self.model.has_replaced(place) || without.run().as_bytes() != self.ran.answer
    }

    /// What a command has done to a key; `None` if it may have met that it was gone. Which of
    /// several unsure ones DEL has removed, their number does not tell.
    fn event(&self, place: &Place, name: Option<&'static str>) -> Event {
        let unsure = self.named.values().filter(|(_, ways)| !ways.is_empty());
        let is_vague = self.ran.words[0] == b"DEL" && unsure.count() > 1;
        let named = self.named.get(place);
        let ways = named.map_or(&[][..], |(_, ways)| ways);
        let names = match name {
            Some(name) if !is_vague => vec![name],
            None if !is_vague => ways.to_vec(),
            _ => [ways, &["del"]].concat(),
        };
        let is_doubtful = named.is_some_and(|(entry, _)| entry.doubtful);
        let optional = is_doubtful && (name.is_none() || is_vague);
        Event { names, optional }
    }
}

/// The keys that a command names.
pub(super) fn keys_of(ran: &Ran, word: &[u8], db: u32) -> BTreeSet<Place> {
    let words = ran.words[1..].iter();
    let keys: Vec<_> = match word {
        b"MGET" | b"DEL" | b"RENAME" | b"RENAMENX" => words.collect(),
        b"EVAL" | b"EVAL_RO" => {
            let script = Script::of(&ran.words[1]).expect("a script");
            let given = Given::of(&ran.words[2..], false).expect("its keys");
            let keys = script.keys(given);
            return keys.into_iter().map(|key| (db, key)).collect();
        }
        b"MSET" | b"MSETNX" => words.step_by(2).collect(),
        b"MSETEX" => {
            let count = std::str::from_utf8(&ran.words[1])
                .ok()
                .and_then(|count| count.parse().ok());
            words.skip(1).step_by(2).take(count.unwrap_or(0)).collect()
        }
        _ => words.take(1).collect(),
    };
    keys.into_iter().map(|key| (db, key.clone())).collect()
}

/// Whether a command changes data.
pub(super) fn changes(word: &[u8]) -> bool {
    let is_drawn = WRITES.iter().any(|name| name.as_bytes() == word);
    is_drawn
        || matches!(
            word,
            b"EVAL"
                | b"EVALSHA"
                | b"FCALL"
                | b"INCR"
                | b"PUBLISH"
                | b"FLUSHDB"
                | b"FLUSHALL"
                | b"SWAPDB"
        )
}
