//! Claims of a table: taken, extended, ended.

use std::sync::Arc;
use std::time::Duration;

use super::Table;
use super::limits::Slot;
use super::row::{Lease, Row, Start};
use crate::shape::claim::{Claim, Fence, Verdict};
use crate::shape::dead::DeadLetter;
use crate::shape::timestamp::Timestamp;
use crate::store::{Ask, Failure};

impl Table {
    pub(crate) fn claim(&mut self, ask: &Ask, now: Timestamp) -> Vec<Claim> {
        self.forget(now);
        let due = now.plus(ask.lookahead);
        let room = |queue: &str| match ask.admits(queue) {
            true => self.room(queue, now, due),
            false => 0,
        };
        let ids = self.order.claimable(room, (now, due), ask.most);
        let claims = ids.iter();
        let claims = claims.filter_map(|id| self.claim_one(id, ask.lease, (now, due)));
        let (unread, claims): (Vec<_>, Vec<_>) =
            claims.partition(|claim: &Claim| claim.terms.trouble().is_some());
        for claim in unread {
            let why = claim.terms.trouble().unwrap_or_default();
            self.fail(&claim, Failure::never(why), now);
        }
        claims
    }

    fn claim_one(
        &mut self,
        id: &str,
        lease: Duration,
        (now, until): (Timestamp, Timestamp),
    ) -> Option<Claim> {
        let row = self.rows.get(id)?;
        let (queue, due) = (row.terms.queue.clone(), row.due);
        let slot = self.slot(&queue, (due, now, until));
        if slot == Slot::None {
            return None;
        }
        self.fence += 1;
        let fence = self.fence;
        let until = now.plus(lease);
        self.hold(id, |row| row.claimed(Lease { fence, until }))?;
        let row = self.rows.get(id)?;
        let mut claim = Claim::new(id, row.due, Fence(fence), lease);
        claim.payload.clone_from(&row.payload);
        (claim.priority, claim.terms) = (row.priority, row.terms.clone());
        (claim.began, claim.attempt) = (row.began, row.attempt);
        (claim.lost, claim.doubtful) = (row.lost, row.start != Start::None);
        if let Slot::At(slot) = slot {
            (claim.due, claim.has_slot) = (slot, true);
        }
        Some(claim)
    }

    /// Changes who holds a task. Claims are not on disk, so that nothing is touched.
    fn hold(&mut self, id: &str, change: impl FnOnce(Row) -> Row) -> Option<()> {
        let (id, row) = self.take(id)?;
        let row = change(row);
        self.order.insert(&id, &row);
        self.rows.insert(id, Box::new(row));
        Some(())
    }

    pub(crate) fn extend(&mut self, claim: &Claim, lease: Duration, now: Timestamp) -> Verdict {
        if !self.holds(&claim.id, claim.fence.0) {
            return Verdict::Refused;
        }
        let until = now.plus(lease);
        let fence = claim.fence.0;
        let held = Some(Lease { fence, until });
        self.hold(&claim.id, |row| Row { held, ..row })
            .is_some()
            .into()
    }

    /// A run begins.
    pub(crate) fn note_start(&mut self, claim: &Claim) -> Verdict {
        if !self.holds(&claim.id, claim.fence.0) {
            return Verdict::Refused;
        }
        let start = Start::Noted;
        let noted = self.hold(&claim.id, |row| Row { start, ..row });
        self.touched.push(self.shared(&claim.id));
        noted.is_some().into()
    }

    /// The task of a claim, if its fence is the latest.
    fn ended(&mut self, claim: &Claim) -> Option<(Arc<str>, Row)> {
        let holds = self.holds(&claim.id, claim.fence.0);
        holds.then(|| self.take(&claim.id)).flatten()
    }

    pub(crate) fn done(&mut self, claim: &Claim, now: Timestamp) -> Verdict {
        let Some((id, row)) = self.ended(claim) else {
            return Verdict::Refused;
        };
        self.keep_result(&id, claim, now);
        self.go_on(id, row, now);
        Verdict::Accepted
    }

    /// Files the next run of a periodic task; the end of another one is written.
    fn go_on(&mut self, id: Arc<str>, row: Row, now: Timestamp) {
        match row.terms.next(row.began, now) {
            Some(next) => self.put(id, row.anew(next)),
            None => self.touched.push(id),
        }
    }

    pub(crate) fn fail(&mut self, claim: &Claim, failure: Failure, now: Timestamp) -> Verdict {
        let Some((id, row)) = self.ended(claim) else {
            return Verdict::Refused;
        };
        if !failure.counts {
            self.give_slot_back(claim);
        }
        match failure.retry {
            Some(due) => {
                let (due, attempt) = (due.at(now), failure.next_attempt(row.attempt));
                let (lost, start) = (0, Start::None);
                self.put(
                    id,
                    Row {
                        due,
                        attempt,
                        lost,
                        start,
                        progress: None,
                        held: None,
                        ..row
                    },
                );
            }
            None => {
                let attempts = failure.attempts(row.attempt);
                let mut letter = DeadLetter::new(&*id, attempts, failure.error);
                letter.payload.clone_from(&row.payload);
                (letter.died, letter.terms) = (now, row.terms.of_letter());
                self.dead.insert(Arc::clone(&id), letter);
                self.go_on(id, row, now);
            }
        }
        Verdict::Accepted
    }

    pub(crate) fn release(&mut self, claim: &Claim) -> Verdict {
        let Some((id, row)) = self.ended(claim) else {
            return Verdict::Refused;
        };
        self.give_slot_back(claim);
        let (held, was) = (None, row.start);
        let start = match was {
            Start::Noted => Start::Doubtful,
            other => other,
        };
        let row = Row { held, start, ..row };
        if was == Start::Noted {
            self.touched.push(Arc::clone(&id));
        }
        self.order.insert(&id, &row);
        self.rows.insert(id, Box::new(row));
        Verdict::Accepted
    }
}
