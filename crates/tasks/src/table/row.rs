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
    /// The number of its attempts since the last failure that ended with their process.
    pub(crate) lost: u32,
    pub(crate) start: Start,
    /// The progress of this attempt.
    pub(crate) progress: Option<Vec<u8>>,
    /// Its lease, if it is claimed.
    pub(crate) held: Option<Lease>,
}

/// The start of a run that was not answered yet, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Start {
    #[default]
    None,
    /// An earlier claim was not answered. It may not have run.
    Doubtful,
    /// A run has begun, which counts as an attempt if it is not answered.
    Noted,
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
            lost: 0,
            start: Start::None,
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
            lost: 0,
            start: Start::None,
            progress: None,
            held: None,
            ..self
        }
    }

    /// Claimed: a run that was begun before, and not answered, counts.
    pub(crate) fn claimed(self, lease: Lease) -> Self {
        let is_lost = self.start == Start::Noted;
        let is_doubtful = self.held.is_some() || self.start != Start::None;
        Self {
            attempt: self.attempt.saturating_add(is_lost.into()),
            lost: self.lost.saturating_add(is_lost.into()),
            start: match is_doubtful {
                true => Start::Doubtful,
                false => Start::None,
            },
            held: Some(lease),
            ..self
        }
    }
}
