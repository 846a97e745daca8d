//! The engine loop tells the engine how far runs have come.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tidewheel_time::Clock;

use crate::shape::error::StoreError;
use crate::store::TaskStore;
use crate::worker::shared::Shared;

/// The engine is told of progress at most once in so long.
const PAUSE: Duration = Duration::from_millis(100);

/// The runs whose progress the engine was not told.
#[derive(Debug, Default)]
pub(super) struct Progress {
    keys: BTreeSet<u64>,
    /// The earliest time of the next call.
    at: Duration,
}

impl Progress {
    pub(super) fn add(&mut self, keys: Vec<u64>) {
        self.keys.extend(keys);
    }

    /// The time of the next call.
    pub(super) fn next(&self) -> Option<Duration> {
        (!self.keys.is_empty()).then_some(self.at)
    }

    pub(super) fn tell<S: TaskStore>(&mut self, shared: &Shared<S>) -> Result<(), StoreError> {
        let now = shared.clock.now();
        if self.keys.is_empty() || now < self.at {
            return Ok(());
        }
        self.at = now.saturating_add(PAUSE);
        while let Some(key) = self.keys.pop_first() {
            let held = shared.held();
            let control = held.control(key);
            let claim = held.get(key).map(|held| Arc::clone(&held.claim));
            drop(held);
            let (Some(control), Some(claim)) = (control, claim) else {
                continue;
            };
            let Some(progress) = control.take_progress() else {
                continue;
            };
            let told = shared.call(shared.store.progress(&claim, progress.clone()));
            // Otherwise it is not the worker's any more, or the store keeps none.
            if let Err(error @ (StoreError::Engine(_) | StoreError::TimedOut)) = told {
                control.put_back(progress);
                self.keys.insert(key);
                return Err(error);
            }
        }
        Ok(())
    }
}
