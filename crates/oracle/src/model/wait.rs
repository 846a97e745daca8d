//! Commands that wait: who came first is served first, and nobody waits for what is there.

use tidewheel_resp::Reply;

use super::{Bytes, Expect, Model, Place};

/// One that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    /// Its client.
    pub id: u64,
    db: u32,
    line: Vec<String>,
}

impl Waiter {
    fn name(&self) -> &str {
        &self.line[0]
    }

    /// The keys that it waits for.
    fn keys(&self) -> impl Iterator<Item = Place> {
        let keys = match self.name() {
            "BLMOVE" | "BRPOPLPUSH" => 1..2,
            "BLMPOP" | "BZMPOP" => 3..5,
            _ => 1..self.line.len() - 1,
        };
        self.line[keys]
            .iter()
            .map(|key| (self.db, key.clone().into_bytes()))
    }

    fn wants_zset(&self) -> bool {
        self.name().starts_with("BZ")
    }

    /// Whether it waits for a key too for which another one waits, in the same queue.
    fn is_behind(&self, key: &Place, other: &Self) -> bool {
        self.wants_zset() == other.wants_zset() && other.keys().any(|other| other == *key)
    }
}

impl Model {
    /// A client waits.
    pub fn waits(&mut self, id: u64, words: &[&str]) {
        let line = words.iter().map(|word| (*word).to_owned()).collect();
        let waiter = Waiter {
            id,
            db: self.db,
            line,
        };
        assert!(
            !waiter.keys().any(|key| self.serves(&waiter, &key)),
            "{words:?} waits for what is there"
        );
        self.waiters.push_back(waiter);
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// A client that waits is gone.
    pub fn leaves(&mut self, id: u64) {
        self.waiters.retain(|waiter| waiter.id != id);
    }

    /// A client was served: what it must have been told. It is the first in the queue of a key that
    /// has something; of its own keys, the first that has something by then serves it.
    pub fn serve(&mut self, id: u64, answer: &Reply) -> Expect {
        let at = self.waiters.iter().position(|waiter| waiter.id == id);
        let waiter = self
            .waiters
            .remove(at.expect("somebody who waits was served"))
            .unwrap();
        let key = self.served_by(&waiter, answer);
        let before = self.waiters.iter().take(at.unwrap());
        let is_first = |key: &Place| !before.clone().any(|earlier| waiter.is_behind(key, earlier));
        let mut from_there = waiter.keys().skip_while(|other| *other != key);
        assert!(
            from_there.any(|other| self.serves(&waiter, &other) && is_first(&other)),
            "{waiter:?} was served {key:?} out of turn: {:?}",
            self.waiters
        );
        let mut passed_over = waiter.keys().take_while(|other| *other != key);
        let passed_over = passed_over.find(|other| self.serves(&waiter, other));
        assert_eq!(passed_over, None, "{waiter:?} was served {key:?}");
        let here = std::mem::replace(&mut self.db, waiter.db);
        let key = String::from_utf8(key.1).unwrap();
        let only = waiter.line.iter().map(|word| word.as_str());
        // It is run as if it had named that key only.
        let words: Vec<&str> = match waiter.name() {
            "BLMPOP" | "BZMPOP" => only
                .enumerate()
                .map(|(at, word)| match at {
                    3 | 4 => key.as_str(),
                    _ => word,
                })
                .collect(),
            "BLMOVE" | "BRPOPLPUSH" => only.collect(),
            name => vec![name, &key, "0"],
        };
        let told = self.run(&words, answer);
        self.db = here;
        told
    }

    fn served_by(&self, waiter: &Waiter, answer: &Reply) -> Place {
        let first = match answer {
            Reply::Array(items) => items.first(),
            _ => None,
        };
        match first {
            Some(Reply::Bulk(key)) => (waiter.db, key.clone()),
            _ => waiter.keys().next().expect("a key"),
        }
    }

    fn serves(&self, waiter: &Waiter, key: &Place) -> bool {
        match waiter.wants_zset() {
            true => self.holds_zset(key),
            false => self.holds_list(key),
        }
    }

    /// Nobody waits for a key that holds something.
    pub fn check_waiters(&self) {
        for waiter in &self.waiters {
            let missed: Option<Bytes> = waiter
                .keys()
                .find(|key| self.serves(waiter, key))
                .map(|key| key.1);
            assert!(missed.is_none(), "{waiter:?} waits for {missed:?}");
        }
    }
}
