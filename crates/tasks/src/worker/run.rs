//! A run is one call of a task's handler.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::ends::Ending;
use crate::shape::claim::{Claim, Fence};
use crate::shape::timestamp::Timestamp;

/// The function that is called with a run. It reports the run's end through the `Ending`, at once
/// or later; one that is dropped reports a failure.
pub(super) type Handler = Box<dyn Fn(Run, Ending) + Send + Sync>;

/// One run of a task. Clones are the same run.
#[derive(Clone)]
pub struct Run {
    claim: Arc<Claim>,
    late: Duration,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.claim.id)
            .field("due", &self.claim.due)
            .field("fence", &self.claim.fence)
            .field("attempt", &self.claim.attempt)
            .field("late", &self.late)
            .finish_non_exhaustive()
    }
}

impl Run {
    pub(super) fn new(claim: Arc<Claim>, late: Duration) -> Self {
        Self { claim, late }
    }

    /// The task's name.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.claim.id
    }

    /// The payload that was scheduled with it.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.claim.payload
    }

    /// The due time, by the engine's clock.
    #[must_use]
    pub fn due(&self) -> Timestamp {
        self.claim.due
    }

    /// The number of its claim: to be passed on to whatever the handler changes.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.claim.fence
    }

    /// The number of this attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.claim.attempt
    }

    /// The lateness: the time from the due time to the call of the handler, as far as the worker
    /// knows the engine's clock.
    #[must_use]
    pub fn late(&self) -> Duration {
        self.late
    }
}
