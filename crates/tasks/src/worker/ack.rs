//! `Ack` is the acknowledgement of a run: its owner ends the run.

use std::fmt;

use super::ends::Ending;
use crate::shape::outcome::IntoOutcome;

/// The acknowledgement of one run, from [`Run::ack`](crate::Run::ack).
///
/// The task is kept, and its lease extended, until [`settle`](Self::settle) says how its run ended.
/// A task whose `Ack` is dropped has failed, and is retried. So work that a handler spawns runs at
/// least once, whatever becomes of it: move the `Ack` into it.
///
/// Settling waits for nothing: the worker tells the engine soon after.
#[must_use = "a task whose acknowledgement is dropped has failed"]
pub struct Ack(Ending);

impl Ack {
    pub(super) fn of(ending: Ending) -> Self {
        Self(ending)
    }

    /// The run ended like this: `()` or `Outcome::Done` for a task that is over, or a `Result`.
    pub fn settle(mut self, outcome: impl IntoOutcome) {
        self.0.say(outcome.into_outcome());
    }

    /// The task is over: as `settle(())`.
    pub fn done(self) {
        self.settle(());
    }
}

impl fmt::Debug for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ack").finish_non_exhaustive()
    }
}
