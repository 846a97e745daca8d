//! A claim is a task that a store gives to a worker, for some time, under a fence.

use std::time::Duration;

use crate::shape::task::Priority;
use crate::shape::terms::Terms;
use crate::shape::timestamp::Timestamp;

/// The number of a claim: greater than those of all earlier claims of the same id, also after
/// restarts of the engine.
///
/// A receiver that remembers the greatest fence of an id and refuses smaller ones is safe from a
/// worker that was thought dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// A task that a worker may run, as long as its lease lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claim {
    /// The task's name.
    pub id: String,
    /// The due time, by the engine's clock. If its queue is limited, it is the time of its slot.
    pub due: Timestamp,
    /// The payload for the handler.
    pub payload: Vec<u8>,
    /// Its priority.
    pub priority: Priority,
    /// What else the task says: its rhythm, if it is periodic.
    pub terms: Terms,
    /// The due time of the run that a retry of a periodic task repeats. The rhythm goes on from
    /// there.
    pub began: Timestamp,
    /// The number of this attempt, from 1. What counts are failures, and runs that were
    /// [noted](crate::TaskStore::note_start) and whose process then ended.
    pub attempt: u32,
    /// The number of attempts since the last failure that ended with their process.
    pub lost: u32,
    /// True if an earlier claim of this attempt may never have been answered: its run may have
    /// ended the process. So the worker has the store note the start before it runs it.
    pub doubtful: bool,
    /// The number of this claim.
    pub fence: Fence,
    /// The length of the lease after each extension.
    pub lease: Duration,
    /// The length of the first lease, after it was asked for: a store may have fetched it before.
    pub remaining: Duration,
    /// The length of a lease that survives a fail-over of the engine, in which later extensions may
    /// be lost. A worker counts it from the lease before the latest. After that it asks before it
    /// runs the claim, and does not run it without an answer.
    pub sure: Duration,
    /// [`TaskStore::interruptions`](crate::TaskStore::interruptions) when it was given out.
    pub interruptions: u64,
    /// The result of its run, if it succeeds: for a task that [keeps it](crate::Task::keep_result).
    pub result: Option<Vec<u8>>,
    /// The store's own data, by which it finds the claim again.
    pub receipt: String,
    /// True if it is not as it was scheduled: a store hands it to no worker.
    #[cfg_attr(not(any(feature = "postgres", feature = "nats")), allow(dead_code))]
    pub(crate) is_damaged: bool,
    /// True if its due time is a slot of its queue's limit.
    pub(crate) has_slot: bool,
}

impl Claim {
    /// A claim of a task that runs once, for the first time.
    #[must_use]
    pub fn new(id: impl Into<String>, due: Timestamp, fence: Fence, lease: Duration) -> Self {
        Self {
            id: id.into(),
            due,
            payload: Vec::new(),
            priority: Priority::Normal,
            terms: Terms::default(),
            began: due,
            attempt: 1,
            lost: 0,
            doubtful: false,
            fence,
            lease,
            remaining: lease,
            sure: Duration::MAX,
            interruptions: 0,
            result: None,
            receipt: String::new(),
            is_damaged: false,
            has_slot: false,
        }
    }

    /// The time at which its turn is asked for, if its task waits for others: its own time, since
    /// the slot beside which it waits may be long after that.
    pub(crate) fn asked_at(&self) -> Timestamp {
        match self.has_slot && self.terms.waits.is_some() {
            true => self.began.min(self.due),
            false => self.due,
        }
    }

    /// The time of the task's next run, if it has one. One that is damaged has none.
    #[cfg(any(feature = "postgres", feature = "nats"))]
    pub(crate) fn next_run(&self, now: Timestamp) -> Option<Timestamp> {
        let next = self.terms.next(self.began, now);
        next.filter(|_| !self.is_damaged)
    }
}

/// A store's answer to a call under a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The call had its effect.
    Accepted,
    /// The fence is not the latest any more: the task was claimed again, cancelled, replaced, or
    /// has ended.
    Refused,
    /// The engine did not take this one just now: perhaps a transaction that replaces the task has
    /// locked it, or the answer was lost. Call again.
    Busy,
}

impl Verdict {
    /// True if the call had its effect.
    #[must_use]
    pub fn is_accepted(self) -> bool {
        self == Self::Accepted
    }
}

impl From<bool> for Verdict {
    fn from(accepted: bool) -> Self {
        if accepted {
            Self::Accepted
        } else {
            Self::Refused
        }
    }
}
