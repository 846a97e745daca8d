//! A program's hooks around each run: before its handler, and when it has ended.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::run::Run;
use crate::shape::claim::Claim;
use crate::shape::outcome::Outcome;

/// A program's hooks around each run of a worker: measure, log, refuse. See
/// [`WorkerBuilder::around`](crate::WorkerBuilder::around).
///
/// ```
/// use tidewheel_tasks::{Around, Claim, MemoryStore, Outcome, Run, Worker};
///
/// struct Log;
///
/// impl Around for Log {
///     fn before(&self, run: &Run) -> Option<Outcome> {
///         println!("{} begins", run.id());
///         // A task without a payload is over before its handler.
///         run.payload().is_empty().then_some(Outcome::Done)
///     }
///
///     fn after(&self, claim: &Claim, outcome: Outcome) -> Outcome {
///         println!("{} has ended: {outcome:?}", claim.id);
///         outcome
///     }
/// }
///
/// let builder = Worker::builder(MemoryStore::new()).around(Log);
/// # drop(builder);
/// ```
pub trait Around: Send + Sync + 'static {
    /// A run begins. With an outcome it ends at once, without its handler and without what comes
    /// after this. It is called on the thread that calls the handler; one that panics has failed
    /// the run.
    fn before(&self, run: &Run) -> Option<Outcome> {
        let _ = run;
        None
    }

    /// A run has ended, however: by its handler, its acknowledgement, a panic, or early. Returns
    /// the outcome that counts. It is called on the thread that ends the run; if it panics, the run
    /// has failed. Of a run that [`before`](Self::before) has ended, only those before that one are
    /// called.
    fn after(&self, claim: &Claim, outcome: Outcome) -> Outcome {
        let _ = claim;
        outcome
    }
}

/// All that is done around runs, the first outermost.
#[derive(Default)]
pub(super) struct Arounds(Vec<Box<dyn Around>>);

impl Arounds {
    pub(super) fn add(&mut self, around: impl Around) {
        self.0.push(Box::new(around));
    }

    /// Returns how many have let the run pass, and its outcome, if one has not.
    pub(super) fn before(&self, run: &Run) -> (usize, Option<Outcome>) {
        for (passed, around) in self.0.iter().enumerate() {
            let ended = catch_unwind(AssertUnwindSafe(|| around.before(run)));
            let ended = ended.unwrap_or_else(|payload| Some(failed(payload)));
            if ended.is_some() {
                return (passed, ended);
            }
        }
        (self.0.len(), None)
    }

    /// The outcome that counts, after those that have let the run pass.
    pub(super) fn after(&self, passed: usize, claim: &Claim, outcome: Outcome) -> Outcome {
        let passed = self.0.iter().take(passed).rev();
        passed.fold(outcome, |outcome, around| {
            let ended = catch_unwind(AssertUnwindSafe(|| around.after(claim, outcome)));
            ended.unwrap_or_else(failed)
        })
    }
}

/// Its drop is the user's code: if it panics too, it is left alone.
fn failed(payload: Box<dyn std::any::Any + Send>) -> Outcome {
    let outcome = Outcome::panicked(&*payload);
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload))).map_err(std::mem::forget);
    outcome
}
