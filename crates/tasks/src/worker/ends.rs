//! A run ends by its handler, by its acknowledgement, by a panic, or because its future was
//! dropped.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::held::Stage;
use super::mailbox::End;
use super::shared::Shared;
use super::stats::count;
use crate::shape::outcome::{IntoOutcome, Outcome};
use crate::store::TaskStore;

/// An observer of the ends of runs.
pub(super) trait Ends: Send + Sync {
    /// A claim has ended.
    fn ended(&self, key: u64, outcome: Outcome);

    /// The run ended by a panic.
    fn panicked(&self);

    /// The handler has come back, and the run may go on.
    fn returned(&self, key: u64);
}

impl<S: TaskStore> Ends for Shared<S> {
    fn ended(&self, key: u64, outcome: Outcome) {
        let (claim, control) = {
            let held = self.held();
            let claim = held.get(key).map(|held| Arc::clone(&held.claim));
            (claim, held.control(key))
        };
        // The user's code is called without a lock.
        let outcome = match (claim, control) {
            (Some(claim), Some(control)) => self.around.after(control.passed(), &claim, outcome),
            _ => outcome,
        };
        self.held().set_stage(key, Stage::Ended);
        self.mailbox.end(key, End::Ran(outcome));
    }

    fn panicked(&self) {
        count(&self.counters.panicked);
    }

    fn returned(&self, key: u64) {
        self.held().pass_on(key);
    }
}

/// The duty to say how a run ended. Dropped, it says that the run failed.
pub(super) struct Ending {
    to: Option<(Arc<dyn Ends>, u64)>,
}

impl Ending {
    pub(super) fn say(&mut self, outcome: Outcome) {
        if let Some((to, key)) = self.to.take() {
            to.ended(key, outcome);
        }
    }

    fn say_panic(&mut self, outcome: Outcome) {
        if let Some((to, key)) = self.to.take() {
            to.panicked();
            to.ended(key, outcome);
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.say_panic(Outcome::failed("the run panicked or was dropped"));
    }
}

/// The place in which the ending of a run is until somebody takes it: whoever runs the handler, or
/// an `Ack`.
#[derive(Clone)]
pub(super) struct Slot {
    ending: Arc<Mutex<Option<Ending>>>,
    /// A run that somebody keeps does not keep the store.
    to: Weak<dyn Ends>,
    key: u64,
}

impl Slot {
    pub(super) fn new(to: Arc<dyn Ends>, key: u64) -> Self {
        let weak = Arc::downgrade(&to);
        let ending = Ending {
            to: Some((to, key)),
        };
        let to = weak;
        let ending = Arc::new(Mutex::new(Some(ending)));
        Self { ending, to, key }
    }

    pub(super) fn take(&self) -> Option<Ending> {
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.take()
    }

    /// Runs a handler on this thread, and says how it ended, unless it has passed the run on.
    pub(super) fn of<R: IntoOutcome>(&self, handler: impl FnOnce() -> R) {
        let outcome = catch_unwind(AssertUnwindSafe(|| handler().into_outcome()));
        let ending = self.take();
        match (ending, outcome) {
            (Some(mut ending), Ok(outcome)) => ending.say(outcome),
            (Some(mut ending), Err(payload)) => {
                ending.say_panic(Outcome::panicked(&*payload));
                discard(payload);
            }
            (None, outcome) => {
                if let Some(to) = self.to.upgrade() {
                    to.returned(self.key);
                }
                if let Err(payload) = outcome {
                    discard(payload);
                }
            }
        }
    }

    /// The guard of a run that goes on as a future: dropped, it says that the run failed, unless
    /// the future has passed the run on.
    pub(super) fn guard(self) -> Going {
        Going(self)
    }
}

/// Drops the payload of a panic. That is the user's code: if it panics too, it is left alone.
fn discard(payload: Box<dyn Any + Send>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload))).map_err(std::mem::forget);
}

/// A run that goes on as a future.
pub(super) struct Going(Slot);

impl Going {
    /// The future has come to its end.
    pub(super) fn end(self, outcome: Outcome) {
        if let Some(mut ending) = self.0.take() {
            ending.say(outcome);
        }
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}
