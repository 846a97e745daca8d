//! Tasks that are not tried any more.

use crate::shape::look::{Look, State};
use crate::shape::terms::Terms;
use crate::shape::timestamp::Timestamp;

/// A task that is not tried any more, kept until somebody re-queues or removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The task's name. A store has at most one dead letter of a name: the latest.
    pub id: String,
    /// The payload for the handler.
    pub payload: Vec<u8>,
    /// The number of attempts.
    pub attempts: u32,
    /// The error of the last attempt. It begins with "it is damaged" if the id, the payload or the
    /// terms are not as the store has written them: then its payload may be another one.
    pub error: String,
    /// The time of the last attempt, by the engine's clock.
    pub died: Timestamp,
    /// What else the task says if it is tried again.
    pub terms: Terms,
}

impl DeadLetter {
    /// A letter as a store has kept it.
    #[must_use]
    pub fn new(id: impl Into<String>, attempts: u32, error: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            payload: Vec::new(),
            attempts,
            error: error.into(),
            died: Timestamp(0),
            terms: Terms::default(),
        }
    }

    pub(crate) fn look(&self) -> Look {
        let mut look = Look::new(&*self.id, self.died, self.payload.clone());
        (look.state, look.attempt) = (State::Dead, self.attempts);
        (look.terms, look.error) = (self.terms.clone(), Some(self.error.clone()));
        look
    }
}
