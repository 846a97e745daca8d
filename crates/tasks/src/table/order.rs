//! In which order tasks are claimed: the pending by priority and time, the claimed by the end of
//! their lease.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::row::Row;
use crate::shape::timestamp::Timestamp;

type Place = (Timestamp, Arc<str>);

/// Where each task stands.
#[derive(Debug, Default)]
pub(super) struct Order {
    pending: [BTreeSet<Place>; 3],
    held: BTreeSet<Place>,
}

impl Order {
    pub(super) fn insert(&mut self, id: &Arc<str>, row: &Row) {
        let (places, at) = self.place(row);
        places.insert((at, Arc::clone(id)));
    }

    pub(super) fn remove(&mut self, id: &Arc<str>, row: &Row) {
        let (places, at) = self.place(row);
        places.remove(&(at, Arc::clone(id)));
    }

    /// What may be claimed: first what a lease has ended of, then by priority what is due until
    /// `due`.
    pub(super) fn claimable(&self, now: Timestamp, due: Timestamp, most: usize) -> Vec<Arc<str>> {
        let ended = self.held.iter().take_while(|(until, _)| *until <= now);
        let soon = self.pending.iter();
        let soon = soon.flat_map(|places| places.iter().take_while(|(at, _)| *at <= due));
        let ids = ended.chain(soon).map(|(_, id)| Arc::clone(id));
        ids.take(most).collect()
    }

    fn place(&mut self, row: &Row) -> (&mut BTreeSet<Place>, Timestamp) {
        match row.held {
            Some(held) => (&mut self.held, held.until),
            None => (
                &mut self.pending[usize::from(row.priority.level())],
                row.due,
            ),
        }
    }
}
