//! `Ack` is the acknowledgement of a run: its owner ends the run.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::outcome::{IntoOutcome, Outcome};

/// A run that has not ended.
pub(crate) trait Settle: Send {
    /// The handler has passed the run on: it goes on after the handler.
    fn defer(&self);

    /// Ends it, on this thread.
    fn settle(self: Box<Self>, outcome: Outcome);

    /// Ends one that was passed on, on another thread if there is one: this one may be an
    /// executor's, or within anybody's `drop`.
    fn settle_elsewhere(self: Box<Self>, outcome: Outcome);
}

/// The acknowledgement of one run, from [`DurableRun::ack`](crate::DurableRun::ack).
///
/// The job is kept until [`settle`](Self::settle) says how its run ended. A job whose `Ack` is
/// dropped has failed, and is retried. So work that a handler spawns runs at least once, whatever
/// becomes of it: move the `Ack` into it.
///
/// Settling waits for nothing: the end is written by the scheduler's workers, soon after. It keeps
/// the journal open.
#[must_use = "a job whose acknowledgement is dropped has failed"]
pub struct Ack(Option<Box<dyn Settle>>);

impl Ack {
    /// The run ended like this: `()` or `Outcome::Done` for a job that is over, or a `Result`.
    pub fn settle(mut self, outcome: impl IntoOutcome) {
        let outcome = outcome.into_outcome();
        if let Some(run) = self.0.take() {
            run.settle_elsewhere(outcome);
        }
    }

    /// The job is over: as `settle(())`.
    pub fn done(self) {
        self.settle(());
    }
}

impl fmt::Debug for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ack").finish_non_exhaustive()
    }
}

impl Drop for Ack {
    fn drop(&mut self) {
        let Some(run) = self.0.take() else { return };
        let how = if thread::panicking() {
            "the work panicked"
        } else {
            "the acknowledgement was dropped"
        };
        run.settle_elsewhere(Outcome::failed(how));
    }
}

/// The slot in which a run is while its handler has not passed it on.
#[derive(Clone)]
pub(crate) struct Slot(Arc<Mutex<Option<Box<dyn Settle>>>>);

impl Slot {
    pub(crate) fn of(run: Box<dyn Settle>) -> Self {
        Self(Arc::new(Mutex::new(Some(run))))
    }

    /// The run, if it was not taken before.
    pub(crate) fn take(&self) -> Option<Box<dyn Settle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Passes the run on.
    pub(crate) fn ack(&self) -> Option<Ack> {
        let run = self.take()?;
        run.defer();
        Some(Ack(Some(run)))
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}
