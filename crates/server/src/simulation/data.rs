//! What is stored, and what has happened to it: the oracle's model, and the keys that leave by
//! themselves.

use std::collections::BTreeSet;

use tidewheel_keyspace::rows::Flags;
use tidewheel_keyspace::{Event, Time, lookup, resolve};
use tidewheel_oracle::{self as oracle, Entry, Expect, Given, Place, Script};
use tidewheel_resp::{Args, Reply};

use super::model::is_script;
use super::recorder::Ran;
use super::terms::Victims;

/// The data of a server.
#[derive(Debug, Default)]
pub(super) struct Data {
    model: oracle::Model,
    /// Keys that are dead, and that nobody has removed yet.
    dead: BTreeSet<Place>,
}

impl Data {
    /// Takes out what has left by itself until a tick, if it might. Returns the other events.
    pub(super) fn hear(
        &mut self,
        events: &[Event],
        tick: u64,
        victims: Victims,
    ) -> Result<Vec<oracle::Event>, String> {
        let mut caused: Vec<oracle::Event> = Vec::new();
        for event in events {
            let place = (event.db, event.key.to_vec());
            if !matches!(event.name, "expired" | "evicted") {
                caused.push((place.0, place.1, event.name));
                continue;
            }
            let is_late = caused
                .iter()
                .any(|(db, key, _)| (*db, key) == (place.0, &place.1));
            let entry = self.model.lift(&place);
            let deadline = entry.as_ref().and_then(Entry::deadline);
            let might = match event.name {
                "expired" => self.dead.remove(&place) || deadline.is_some_and(|at| at <= tick),
                _ => entry.is_some() && victims.include(deadline),
            };
            if is_late || !might {
                let event = show(&[(place.0, place.1, event.name)]);
                return Err(format!("{event} by itself at {tick}: {entry:?}"));
            }
        }
        Ok(caused)
    }

    /// Compares what commands have caused with what they should have, since the last call.
    pub(super) fn compare(&mut self, caused: &[oracle::Event]) -> Result<(), String> {
        let wanted = self.model.events();
        match caused == wanted {
            true => Ok(()),
            false => Err(format!("caused {}, not {}", show(caused), show(&wanted))),
        }
    }

    /// Runs a command in a database: what it must answer.
    pub(super) fn run(&mut self, ran: &Ran, db: u32, is_full: bool) -> Result<Expect, String> {
        self.pass(ran.time);
        self.upheave(&ran.words[0], db);
        self.model.select(db);
        self.model.is_full(is_full);
        let expect = self.model.run(&ran.words, &Reply::Null);
        let is_here = |place: &&Place| self.model.entry_at(place).is_some();
        match self.dead.iter().find(is_here) {
            Some((db, key)) => Err(format!("{db} {} has not expired", key.escape_ascii())),
            None => Ok(expect),
        }
    }

    /// Lets time pass: nobody sees what is dead then.
    fn pass(&mut self, time: Time) {
        for place in self.model.places() {
            let deadline = self.model.entry_at(&place).and_then(Entry::deadline);
            if deadline.is_some_and(|at| at <= time.tick) {
                self.model.lift(&place);
                self.dead.insert(place);
            }
        }
        self.model.at(time.tick, time.micros > 0, time.wall_ms());
    }

    /// Follows what is dead if databases are swapped. If they are emptied, nobody announces it.
    fn upheave(&mut self, word: &[u8], db: u32) {
        match word {
            b"SWAPDB" => {
                let swapped = |(db, key): &Place| ([1, 0, 2][*db as usize], key.clone());
                self.dead = self.dead.iter().map(swapped).collect();
            }
            b"FLUSHDB" => self.dead.retain(|(of, _)| *of != db),
            b"FLUSHALL" => self.dead.clear(),
            _ => {}
        }
    }

    /// All that is due was removed.
    pub(super) fn check_all_expired(&mut self, now: Time) -> Result<(), String> {
        self.pass(now);
        match self.dead.first() {
            Some((db, key)) => Err(format!("{db} {} never expired", key.escape_ascii())),
            None => Ok(()),
        }
    }

    /// The bytes of the keys that a call names.
    pub(super) fn weight(&self, words: &[Vec<u8>], db: u32) -> usize {
        let places = keys_of(words).into_iter().map(|key| (db, key));
        places
            .filter_map(|place| self.model.entry_at(&place).map(Entry::weight))
            .sum()
    }
}

/// Events as they may be printed.
fn show(events: &[oracle::Event]) -> String {
    let show = |(db, key, name): &oracle::Event| format!("{db} {} {name}", key.escape_ascii());
    format!("{:?}", events.iter().map(show).collect::<Vec<_>>())
}

/// The keys that a call names, or the commands of its script.
fn keys_of(words: &[Vec<u8>]) -> BTreeSet<Vec<u8>> {
    if is_script(&words[0]) {
        let script = Script::of(&words[1]).expect("a script");
        let given = Given::of(&words[2..], false).expect("its keys");
        return script.keys(given).into_iter().collect();
    }
    let slices: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let args = Args::from_slices(&slices);
    let row = resolve(args).expect("a command");
    let keys = row.keys.positions(args).filter_map(|at| args.get(at));
    keys.map(<[u8]>::to_vec).collect()
}

/// Whether a command may be refused for want of memory. A script's calls may be.
pub(super) fn grows(word: &[u8]) -> bool {
    let adds = lookup(word).is_some_and(|row| row.flags.has(Flags::DENYOOM));
    adds || word == b"EVAL"
}
