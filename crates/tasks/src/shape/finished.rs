//! The result of a run, as stores keep it for a time.

use crate::shape::claim::Claim;
use crate::shape::look::{Look, State};
use crate::shape::timestamp::Timestamp;

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) queue: String,
    pub(crate) result: Vec<u8>,
    /// The time of its end.
    pub(crate) at: Timestamp,
    /// It is kept until then.
    pub(crate) until: Timestamp,
}

impl Finished {
    /// That of a run that ends `now`, if its task keeps one.
    pub(crate) fn of(claim: &Claim, now: Timestamp) -> Option<Self> {
        let time = claim.terms.keep_result?;
        Some(Self {
            queue: claim.terms.queue.clone(),
            result: claim.result.clone().unwrap_or_default(),
            at: now,
            until: now.plus(time),
        })
    }

    pub(crate) fn look(&self, id: &str) -> Look {
        let mut look = Look::new(id, self.at, Vec::new());
        (look.state, look.attempt) = (State::Done, 0);
        look.terms.queue.clone_from(&self.queue);
        look.result = Some(self.result.clone());
        look
    }
}
