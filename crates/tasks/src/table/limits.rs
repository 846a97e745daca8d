//! The limits of a table's queues: whether they are open, and the slots of claims.

use super::Table;
use crate::shape::claim::Claim;
use crate::shape::rate::Spent;
use crate::shape::timestamp::Timestamp;

impl Table {
    /// The number of claims that a queue may give now, whose times lie before `until`.
    pub(super) fn room(&self, queue: &str, now: Timestamp, until: Timestamp) -> usize {
        let Some(rules) = self.rules.get(queue) else {
            return usize::MAX;
        };
        match rules.limit {
            _ if rules.paused => 0,
            None => usize::MAX,
            Some(rate) => {
                let spent = self.spent.get(queue).cloned();
                let spent = spent.unwrap_or_else(|| Spent::new(rate));
                spent.under(rate).free(now, until)
            }
        }
    }

    /// The slot of a task that is due at `due`, if its queue is limited; `None` if it has none.
    pub(super) fn slot(
        &mut self,
        queue: &str,
        (due, now, until): (Timestamp, Timestamp, Timestamp),
    ) -> Slot {
        let Some(rate) = self.rules.get(queue).and_then(|rules| rules.limit) else {
            return Slot::Free;
        };
        let spent = self.spent.remove(queue);
        let mut spent = spent.unwrap_or_else(|| Spent::new(rate)).under(rate);
        let slot = spent.slot(due, now, until);
        self.spent.insert(queue.to_owned(), spent);
        slot.map_or(Slot::None, Slot::At)
    }

    /// Frees the slot that a claim has.
    pub(crate) fn give_slot_back(&mut self, claim: &Claim) {
        if let Some(spent) = self.spent.get_mut(&claim.terms.queue)
            && claim.has_slot
        {
            spent.give_back(claim.due);
        }
    }
}

/// Whether a task may run, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// At its due time: its queue is not limited.
    Free,
    At(Timestamp),
    /// Not yet.
    None,
}
