//! A run is one call of a task's handler.

use std::time::Duration;

/// One run of a task, as the handler gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Run<K, V> {
    /// The task's key.
    pub key: K,
    /// Its value.
    pub value: V,
    /// The time from its deadline to the call of the handler.
    pub late: Duration,
    /// Runs of a periodic task that are left out after this one, by its
    /// [`CatchUp`](crate::CatchUp).
    pub missed: u64,
}
