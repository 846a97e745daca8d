//! A task as somebody who looks at a store sees it.

use crate::shape::task::Priority;
use crate::shape::terms::Terms;
use crate::shape::timestamp::Timestamp;

/// A task that a store has: it waits for its time, or a worker has claimed it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pending {
    /// The task's name.
    pub id: String,
    /// The time of its next run, by the engine's clock.
    pub due: Timestamp,
    /// The payload for the handler.
    pub payload: Vec<u8>,
    /// Its rank among those that could be claimed.
    pub priority: Priority,
    /// What else it says: its rhythm, if it is periodic.
    pub terms: Terms,
    /// The number of its next attempt, from 1.
    pub attempt: u32,
}

impl Pending {
    /// A task as a store has it.
    #[must_use]
    pub fn new(id: impl Into<String>, due: Timestamp, payload: Vec<u8>) -> Self {
        Self {
            id: id.into(),
            due,
            payload,
            priority: Priority::Normal,
            terms: Terms::default(),
            attempt: 1,
        }
    }
}
