//! The state that the handles of one durable scheduler share.

use std::fmt;
use std::sync::atomic::AtomicU64;

use super::ordered::OrderedJournal;
use crate::jobs::dead::DeadLetters;
use crate::jobs::retry::Retry;

pub(super) struct Shared<K, V, J> {
    pub(super) journal: OrderedJournal<J>,
    pub(super) dead: DeadLetters<K, V>,
    pub(super) retry: Retry,
    /// Runs that failed, and how many of them are retried.
    pub(super) failed: AtomicU64,
    pub(super) retried: AtomicU64,
}

impl<K, V, J> fmt::Debug for Shared<K, V, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("retry", &self.retry)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
