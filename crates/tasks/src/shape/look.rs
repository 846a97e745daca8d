//! A store's answer to somebody who looks at an id.

use std::sync::Arc;

use crate::shape::claim::Claim;
use crate::shape::error::StoreError;
use crate::shape::task::Priority;
use crate::shape::terms::Terms;
use crate::shape::timestamp::Timestamp;
use crate::shape::waits::Waits;

/// Bytes that a progress or a result may have.
const NOTE_MAX: usize = 100_000;

/// Bytes of payloads, progress and results after which a page of a list ends.
pub(crate) const PAGE_BYTES: usize = 4_000_000;

/// Checks that stores take a progress or a result.
pub(crate) fn check_note(bytes: &[u8]) -> Result<(), StoreError> {
    if bytes.len() > NOTE_MAX {
        return Err(StoreError::refused(
            "a progress and a result have 100,000 bytes at most",
        ));
    }
    Ok(())
}

/// Checks that stores take the results of these claims.
pub(crate) fn check_results(claims: &[Arc<Claim>]) -> Result<(), StoreError> {
    let mut results = claims.iter().filter_map(|claim| claim.result.as_deref());
    results.try_for_each(check_note)
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum State {
    /// It waits for its time, or for a worker.
    Pending,
    /// A worker has it. On NATS: it was handed over, a lookahead before its time at the earliest,
    /// and a worker may have it.
    Claimed,
    /// It has ended, and its [result is kept](crate::Task::keep_result).
    Done,
    /// It is a [dead letter](crate::DeadLetter).
    Dead,
}

impl State {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Claimed, Self::Done, Self::Dead];
}

/// What a store says of an id. Of several things that it has under it, a task that is pending or
/// claimed comes first, then what ended last.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Look {
    /// The task's name.
    pub id: String,
    /// Where it is.
    pub state: State,
    /// The time of its next run, by the engine's clock; of one that has ended, the time of its end.
    pub due: Timestamp,
    /// The payload for the handler; none of a task that is done.
    pub payload: Vec<u8>,
    /// Its rank among those that could be claimed.
    pub priority: Priority,
    /// What else it says: its queue, and its rhythm, if it is periodic.
    pub terms: Terms,
    /// The number of its next attempt, from 1, or of its last, if it has ended; 0 if it is done.
    pub attempt: u32,
    /// The latest progress of this attempt.
    pub progress: Option<Vec<u8>>,
    /// The last result that is kept; also of a periodic task that is pending again.
    pub result: Option<Vec<u8>>,
    /// The error of a dead letter, or that it is damaged; in a list also of a task that is.
    pub error: Option<String>,
}

impl Look {
    /// A pending task as a store has it.
    #[must_use]
    pub fn new(id: impl Into<String>, due: Timestamp, payload: Vec<u8>) -> Self {
        Self {
            id: id.into(),
            state: State::Pending,
            due,
            payload,
            priority: Priority::Normal,
            terms: Terms::default(),
            attempt: 1,
            progress: None,
            result: None,
            error: None,
        }
    }

    /// True if the task has not ended.
    #[must_use]
    pub fn is_ahead(&self) -> bool {
        matches!(self.state, State::Pending | State::Claimed)
    }

    /// True if a task that waits for it has to wait on, or is not to run.
    #[must_use]
    pub(crate) fn is_in_the_way_of(&self, waits: &Waits) -> bool {
        self.is_ahead() || (waits.needs_all && self.state == State::Dead)
    }

    /// The bytes that it adds to a page.
    pub(crate) fn bytes(&self) -> usize {
        let notes = [&self.progress, &self.result].into_iter().flatten();
        self.payload.len() + notes.map(Vec::len).sum::<usize>()
    }

    /// True if a page of a [list](crate::TaskStore::list) ended because it has 4 MB, though it may
    /// be shorter than was asked for: there may be more.
    #[must_use]
    pub fn is_cut(page: &[Self]) -> bool {
        page.iter().map(Self::bytes).sum::<usize>() >= PAGE_BYTES
    }

    /// The looks of a page: so many that those before the last have fewer bytes than a page.
    pub(crate) fn page(looks: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut bytes = 0;
        let mut page = Vec::new();
        for look in looks {
            bytes += look.bytes();
            page.push(look);
            if bytes >= PAGE_BYTES {
                break;
            }
        }
        page
    }

    /// Of the things that a store has under an id, what it says.
    pub(crate) fn first_of(
        task: Option<Self>,
        done: Option<Self>,
        dead: Option<Self>,
    ) -> Option<Self> {
        let result = done.as_ref().and_then(|done| done.result.clone());
        let is_later = |done: &Self| dead.as_ref().is_none_or(|dead| dead.due <= done.due);
        let ended = match done.filter(is_later) {
            Some(done) => Some(done),
            None => dead,
        };
        let look = task.or(ended)?;
        Some(Self { result, ..look })
    }
}
