//! A row is one task of the table.

use crate::shape::task::{Priority, Task};
use crate::shape::terms::Terms;
use crate::shape::timestamp::Timestamp;

/// One task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) due: Timestamp,
    /// The due time of the run that is tried again; `due` if it is the first attempt.
    pub(crate) began: Timestamp,
    pub(crate) payload: Vec<u8>,
    pub(crate) priority: Priority,
    pub(crate) terms: Terms,
    /// The number of the next run, from 1.
    pub(crate) attempt: u32,
    /// The progress of this attempt.
    pub(crate) progress: Option<Vec<u8>>,
    /// Its lease, if it is claimed.
    pub(crate) held: Option<Lease>,
}

/// The lease of a claim: its fence and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) fence: u64,
    pub(crate) until: Timestamp,
}

impl Row {
    /// A new task.
    pub(crate) fn of(task: Task, now: Timestamp) -> Self {
        let due = task.first_due(now);
        Self {
            due,
            began: due,
            payload: task.payload,
            priority: task.priority,
            terms: task.terms,
            attempt: 1,
            progress: None,
            held: None,
        }
    }

    /// Pending, with its first attempt ahead.
    pub(crate) fn anew(self, due: Timestamp) -> Self {
        Self {
            due,
            began: due,
            attempt: 1,
            progress: None,
            held: None,
            ..self
        }
    }
}
