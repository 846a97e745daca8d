//! Looks into a table.

use super::Table;
use super::row::Row;
use crate::shape::claim::{Claim, Verdict};
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
    /// So many tasks at most, in the order of their ids, those after the given one. It looks at all
    /// ids: it is for people and for tests.
    pub(crate) fn list(&self, after: Option<&str>, most: usize, now: Timestamp) -> Vec<Look> {
        let ids = self.rows.keys().map(|id| &**id);
        let mut ids: Vec<&str> = ids
            .filter(|id| after.is_none_or(|after| *id > after))
            .collect();
        if most < ids.len() {
            ids.select_nth_unstable(most);
            ids.truncate(most);
        }
        ids.sort_unstable();
        let look = |id| self.rows.get(id).map(|row| row.look(id, now));
        ids.into_iter().filter_map(look).collect()
    }
}

impl Row {
    fn look(&self, id: &str, now: Timestamp) -> Look {
        let is_held = self.held.is_some_and(|held| held.until > now);
        let state = if is_held {
            State::Claimed
        } else {
            State::Pending
        };
        let mut look = Look::new(id, self.due, self.payload.clone());
        (look.state, look.attempt) = (state, self.attempt);
        (look.priority, look.terms) = (self.priority, self.terms.clone());
        look.progress.clone_from(&self.progress);
        look
    }
}
