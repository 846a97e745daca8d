//! The order in which tasks are claimed: the pending by priority and time, the claimed by the end
//! of their lease. Each queue has its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::row::Row;
use crate::shape::timestamp::Timestamp;

/// A time, and a task's id.
type OrderKey = (Timestamp, Arc<str>);

/// The sorted sets of all tasks, by queue. A queue without tasks has none.
#[derive(Debug, Default)]
pub(super) struct Order(BTreeMap<String, Sorted>);

/// The sorted sets of one queue.
#[derive(Debug, Default)]
struct Sorted {
    pending: [BTreeSet<OrderKey>; 3],
    held: BTreeSet<OrderKey>,
}

impl Order {
    pub(super) fn insert(&mut self, id: &Arc<str>, row: &Row) {
        if !self.0.contains_key(&row.terms.queue) {
            self.0.insert(row.terms.queue.clone(), Sorted::default());
        }
        if let Some(sorted) = self.0.get_mut(&row.terms.queue) {
            let (places, at) = sorted.place(row);
            places.insert((at, Arc::clone(id)));
        }
    }

    pub(super) fn remove(&mut self, id: &Arc<str>, row: &Row) {
        let Some(sorted) = self.0.get_mut(&row.terms.queue) else {
            return;
        };
        let (places, at) = sorted.place(row);
        places.remove(&(at, Arc::clone(id)));
        if sorted.is_empty() {
            self.0.remove(&row.terms.queue);
        }
    }

    /// How many tasks of each queue are pending, and how many are claimed.
    pub(super) fn counts(&self, now: Timestamp) -> impl Iterator<Item = (&str, u64, u64)> {
        self.0.iter().map(move |(queue, sorted)| {
            let ended = sorted.held.iter().take_while(|(until, _)| *until <= now);
            let ended = ended.count();
            let pending: usize = sorted.pending.iter().map(BTreeSet::len).sum();
            let claimed = sorted.held.len() - ended;
            (&**queue, (pending + ended) as u64, claimed as u64)
        })
    }

    /// The tasks that may be claimed, of each queue about so many as `room` says: first those whose
    /// lease has ended, then by priority those that are due until `due`.
    pub(super) fn claimable(
        &self,
        room: impl Fn(&str) -> usize,
        (now, due): (Timestamp, Timestamp),
        most: usize,
    ) -> Vec<Arc<str>> {
        let queues = self.0.iter().map(|(queue, sorted)| (room(queue), sorted));
        let queues: Vec<_> = queues.filter(|(room, _)| *room > 0).collect();
        let held = queues
            .iter()
            .map(|(room, sorted)| (*room, &sorted.held, now));
        let mut ids = first(held, most);
        for level in 0..3 {
            let pending = queues.iter();
            let pending = pending.map(|(room, sorted)| (*room, &sorted.pending[level], due));
            ids.extend(first(pending, most - ids.len()));
        }
        ids
    }
}

/// The first of several sets together, of each so many at most, and until a time.
fn first<'a>(
    sets: impl Iterator<Item = (usize, &'a BTreeSet<OrderKey>, Timestamp)>,
    most: usize,
) -> Vec<Arc<str>> {
    let of_each = |(room, set, until): (usize, &'a BTreeSet<OrderKey>, Timestamp)| {
        let soon = set.iter().take_while(move |(at, _)| *at <= until);
        soon.take(most.min(room))
    };
    let mut keys: Vec<_> = sets.flat_map(of_each).collect();
    // One set is in order.
    keys.sort();
    keys.truncate(most);
    keys.into_iter().map(|(_, id)| Arc::clone(id)).collect()
}

impl Sorted {
    fn place(&mut self, row: &Row) -> (&mut BTreeSet<OrderKey>, Timestamp) {
        match row.held {
            Some(held) => (&mut self.held, held.until),
            None => (
                &mut self.pending[usize::from(row.priority.level())],
                row.due,
            ),
        }
    }

    fn is_empty(&self) -> bool {
        self.held.is_empty() && self.pending.iter().all(BTreeSet::is_empty)
    }
}
