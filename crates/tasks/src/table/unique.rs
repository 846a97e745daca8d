//! Ids of a table that are unique for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::shape::timestamp::Timestamp;

/// The number of ids whose time is over that one call forgets.
const FORGET: usize = 8;

/// Ids, each until a time.
#[derive(Debug, Default)]
pub(super) struct Unique {
    until: BTreeMap<Arc<str>, Timestamp>,
    order: BTreeSet<(Timestamp, Arc<str>)>,
}

impl Unique {
    pub(super) fn until(&self, id: &str) -> Option<Timestamp> {
        self.until.get(id).copied()
    }

    /// Puts an id in, instead of what was there.
    pub(super) fn put(&mut self, id: Arc<str>, until: Timestamp) {
        if let Some(before) = self.until.insert(Arc::clone(&id), until) {
            self.order.remove(&(before, Arc::clone(&id)));
        }
        self.order.insert((until, id));
    }

    /// Takes out some ids whose time is over.
    pub(super) fn forget(&mut self, now: Timestamp) -> Vec<Arc<str>> {
        let over = self.order.iter().take_while(|(until, _)| *until <= now);
        // Nearly always there are none, which costs a look.
        let over: Vec<_> = over.take(FORGET).cloned().collect();
        for key in &over {
            self.order.remove(key);
            self.until.remove(&key.1);
        }
        over.into_iter().map(|(_, id)| id).collect()
    }
}
