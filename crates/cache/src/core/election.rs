//! Elects the one task that drives a cache: the first drives until it ends or is dropped, then the
//! next.

use std::sync::Arc;

use crate::events::waiting::{WaiterSlot, Waiting};
use crate::sync::{AtomicBool, Ordering::SeqCst};

/// The election of a cache's driver among several tasks.
pub(crate) struct DriverElection {
    is_taken: AtomicBool,
    waiting: Arc<Waiting>,
}

impl DriverElection {
    pub(crate) fn new() -> Self {
        Self {
            is_taken: AtomicBool::new(false),
            waiting: Waiting::new(),
        }
    }

    /// A task's place among those that wait for their turn to drive.
    pub(crate) fn place(&self) -> WaiterSlot {
        self.waiting.place()
    }

    /// Lets the caller drive, unless another task does.
    pub(crate) fn take(&self) -> bool {
        !self.is_taken.swap(true, SeqCst)
    }

    /// The task that has driven leaves; those that wait try again.
    pub(crate) fn leave(&self) {
        self.is_taken.store(false, SeqCst);
        self.waiting.wake_all();
    }
}
