//! A manual worker has no threads: it is for tests in virtual time.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tidewheel_scheduler::Scheduler;

use super::engine_loop::EngineLoop;
use super::shared::Shared;
use super::stats::Stats;
use crate::store::TaskStore;

/// A worker without threads. Dropping it is a crash: what it holds is not given back.
pub struct ManualWorker<S: TaskStore> {
    pub(super) shared: Arc<Shared<S>>,
    wheel: Scheduler<u64, ()>,
    engine_loop: Mutex<EngineLoop>,
}

impl<S: TaskStore> fmt::Debug for ManualWorker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ManualWorker")
            .field(&self.shared.settings)
            .finish()
    }
}

impl<S: TaskStore> ManualWorker<S> {
    pub(super) fn new(shared: Arc<Shared<S>>, wheel: Scheduler<u64, ()>) -> Self {
        let engine_loop = Mutex::new(EngineLoop::new(&shared));
        Self {
            shared,
            wheel,
            engine_loop,
        }
    }

    /// Calls the engine as far as it is time to, and runs what is due.
    pub fn turn(&self) {
        self.call();
        self.wheel.run_due();
        self.shared.answer_turns(&self.wheel);
        self.wheel.run_due();
        self.call();
    }

    /// Calls the engine as far as it is time to.
    pub fn call(&self) {
        let mut engine_loop = self
            .engine_loop
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let _ = engine_loop.turn(&self.shared, &self.wheel);
    }

    /// Runs what is due, and calls nobody.
    pub fn run_due(&self) {
        self.wheel.run_due();
    }

    /// Claims nothing more, and gives back what was not run.
    pub fn stop(&self) {
        self.shared.mailbox.stop_claiming();
        let pending = self.wheel.stop(std::time::Duration::ZERO).pending;
        self.shared
            .give_back(pending.into_iter().map(|(key, (), _)| key));
        self.shared.turns.stop();
        self.shared.answer_turns(&self.wheel);
        self.call();
    }

    /// Statistics: the runs so far, and the claims that are held.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }
}
