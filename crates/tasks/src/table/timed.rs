//! What a table keeps for a time, by id.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::shape::timestamp::Timestamp;

/// The number of things whose time is over that one call forgets.
const FORGET: usize = 8;

/// Things, each until a time.
#[derive(Debug)]
pub(super) struct Timed<T> {
    things: BTreeMap<Arc<str>, (Timestamp, T)>,
    order: BTreeSet<(Timestamp, Arc<str>)>,
}

impl<T> Default for Timed<T> {
    fn default() -> Self {
        Self {
            things: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }
}

impl<T> Timed<T> {
    /// The thing of an id, also if its time is over and it was not forgotten yet, and its time.
    pub(super) fn get(&self, id: &str) -> Option<&(Timestamp, T)> {
        self.things.get(id)
    }

    /// All things whose time is not over.
    pub(super) fn iter(&self, now: Timestamp) -> impl Iterator<Item = (&Arc<str>, &T)> {
        let things = self.things.iter();
        let things = things.filter(move |(_, (until, _))| *until > now);
        things.map(|(id, (_, thing))| (id, thing))
    }

    /// Puts a thing in, instead of what was there.
    pub(super) fn put(&mut self, id: Arc<str>, until: Timestamp, thing: T) {
        if let Some((before, _)) = self.things.insert(Arc::clone(&id), (until, thing)) {
            self.order.remove(&(before, Arc::clone(&id)));
        }
        self.order.insert((until, id));
    }

    /// Takes out some things whose time is over.
    pub(super) fn forget(&mut self, now: Timestamp) -> Vec<Arc<str>> {
        let over = self.order.iter().take_while(|(until, _)| *until <= now);
        // Nearly always there are none, which costs a look.
        let over: Vec<_> = over.take(FORGET).cloned().collect();
        for key in &over {
            self.order.remove(key);
            self.things.remove(&key.1);
        }
        over.into_iter().map(|(_, id)| id).collect()
    }
}
