//! A run ends by its handler, by a panic, or because its future was dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tidewheel_scheduler::{IntoOutcome, Outcome};

use super::held::Stage;
use super::mailbox::End;
use super::shared::Shared;
use super::stats::count;
use crate::store::TaskStore;

/// An observer of the ends of runs.
pub(super) trait Ends: Send + Sync {
    /// A claim has ended.
    fn ended(&self, key: u64, outcome: Outcome);

    /// The run ended by a panic.
    fn panicked(&self);
}

impl<S: TaskStore> Ends for Shared<S> {
    fn ended(&self, key: u64, outcome: Outcome) {
        self.held().set_stage(key, Stage::Ended);
        self.mailbox.end(key, End::Ran(outcome));
    }

    fn panicked(&self) {
        count(&self.counters.panicked);
    }
}

/// The duty to say how a run ended. Dropped, it says that the run failed.
pub(super) struct Ending {
    to: Option<(Arc<dyn Ends>, u64)>,
}

impl Ending {
    pub(super) fn new(to: Arc<dyn Ends>, key: u64) -> Self {
        Self {
            to: Some((to, key)),
        }
    }

    /// Runs a handler on this thread, and says how it ended.
    pub(super) fn of<R: IntoOutcome>(mut self, handler: impl FnOnce() -> R) {
        let outcome = catch_unwind(AssertUnwindSafe(|| handler().into_outcome()));
        match outcome {
            Ok(outcome) => self.say(outcome),
            Err(payload) => {
                // The payload's drop is the user's code: if it panics too, it is left alone.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(payload))).map_err(std::mem::forget);
                self.say_panic("the handler panicked");
            }
        }
    }

    pub(super) fn say(&mut self, outcome: Outcome) {
        if let Some((to, key)) = self.to.take() {
            to.ended(key, outcome);
        }
    }

    fn say_panic(&mut self, error: &str) {
        if let Some((to, key)) = self.to.take() {
            to.panicked();
            to.ended(key, Outcome::failed(error));
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.say_panic("the run panicked or was dropped");
    }
}
