//! The order in which tasks are claimed: the pending by priority and time, the claimed by the end
//! of their lease.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::row::Row;
use crate::shape::timestamp::Timestamp;

/// A time, and a task's id.
type OrderKey = (Timestamp, Arc<str>);

/// The sorted sets of all tasks.
#[derive(Debug, Default)]
pub(super) struct Order {
    pending: [BTreeSet<OrderKey>; 3],
    held: BTreeSet<OrderKey>,
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

    /// The tasks that may be claimed: first those whose lease has ended, then by priority those
    /// that are due until `due`.
    pub(super) fn claimable(&self, now: Timestamp, due: Timestamp, most: usize) -> Vec<Arc<str>> {
        let ended = self.held.iter().take_while(|(until, _)| *until <= now);
        let soon = self.pending.iter();
        let soon = soon.flat_map(|places| places.iter().take_while(|(at, _)| *at <= due));
        let ids = ended.chain(soon).map(|(_, id)| Arc::clone(id));
        ids.take(most).collect()
    }

    fn place(&mut self, row: &Row) -> (&mut BTreeSet<OrderKey>, Timestamp) {
        match row.held {
            Some(held) => (&mut self.held, held.until),
            None => (
                &mut self.pending[usize::from(row.priority.level())],
                row.due,
            ),
        }
    }
}
