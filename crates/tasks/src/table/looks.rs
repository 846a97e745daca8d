//! Looks into a table.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Table;
use super::row::Row;
use crate::shape::claim::{Claim, Verdict};
use crate::shape::counts::Counts;
use crate::shape::dead::DeadLetter;
use crate::shape::look::{Look, State};
use crate::shape::timestamp::Timestamp;

impl Table {
    /// Keeps the progress of a run, in memory.
    pub(crate) fn progress(&mut self, claim: &Claim, progress: Vec<u8>) -> Verdict {
        let holds = self.holds(&claim.id, claim.fence.0);
        let row = self.rows.get_mut(&*claim.id).filter(|_| holds);
        let kept = row.map(|row| row.progress = Some(progress));
        kept.is_some().into()
    }

    pub(crate) fn look(&self, id: &str, now: Timestamp) -> Option<Look> {
        let task = self.rows.get(id).map(|row| row.look(id, now));
        let done = self.finished.get(id).filter(|(until, _)| *until > now);
        let done = done.map(|(_, finished)| finished.look(id));
        Look::first_of(task, done, self.dead.get(id).map(DeadLetter::look))
    }
}

impl Table {
    /// So many looks at most at what is in a state, in the order of the ids, those after the given
    /// one. It looks at all ids: it is for people.
    pub(crate) fn list(
        &self,
        (state, queue): (State, Option<&str>),
        after: Option<&str>,
        most: usize,
        now: Timestamp,
    ) -> Vec<Look> {
        let is_its = |terms: &str| queue.is_none_or(|queue| queue == terms);
        let is_row = |row: &Row| row.state(now) == state && is_its(&row.terms.queue);
        let rows = self.rows.iter().filter(|(_, row)| is_row(row));
        let done = self
            .finished
            .iter(now)
            .filter(|(_, done)| is_its(&done.queue));
        let dead = self
            .dead
            .iter()
            .filter(|(_, dead)| is_its(&dead.terms.queue));
        let mut ids: Vec<&Arc<str>> = match state {
            State::Done => done.map(|(id, _)| id).collect(),
            State::Dead => dead.map(|(id, _)| id).collect(),
            _ => rows.map(|(id, _)| id).collect(),
        };
        ids.retain(|id| after.is_none_or(|after| &***id > after));
        if most < ids.len() {
            ids.select_nth_unstable(most);
            ids.truncate(most);
        }
        ids.sort_unstable();
        let look = |id: &Arc<str>| match state {
            State::Done => Some(self.finished.get(id)?.1.look(id)),
            State::Dead => Some(self.dead.get(id)?.look()),
            _ => Some(self.rows.get(id)?.look(id, now)),
        };
        Look::page(ids.into_iter().filter_map(look))
    }

    pub(crate) fn counts(&self, now: Timestamp) -> BTreeMap<String, Counts> {
        let mut counts = BTreeMap::<String, Counts>::new();
        let mut add = |queue: &str, state, count| {
            if count > 0 {
                counts
                    .entry(queue.to_owned())
                    .or_default()
                    .add(state, count);
            }
        };
        for (queue, pending, claimed) in self.order.counts(now) {
            add(queue, State::Pending, pending);
            add(queue, State::Claimed, claimed);
        }
        let done = self.finished.iter(now);
        done.for_each(|(_, done)| add(&done.queue, State::Done, 1));
        let dead = self.dead.values();
        dead.for_each(|dead| add(&dead.terms.queue, State::Dead, 1));
        counts
    }
}

impl Row {
    fn state(&self, now: Timestamp) -> State {
        match self.held {
            Some(held) if held.until > now => State::Claimed,
            _ => State::Pending,
        }
    }

    fn look(&self, id: &str, now: Timestamp) -> Look {
        let mut look = Look::new(id, self.due, self.payload.clone());
        (look.state, look.attempt) = (self.state(now), self.attempt);
        (look.priority, look.terms) = (self.priority, self.terms.clone());
        look.progress.clone_from(&self.progress);
        look
    }
}
