//! One run of a durable task, and what its value carries until then.

use std::time::Duration;

use crate::api::handle::Handle;
use crate::core::run::Run;

/// The value of a durable task, with its name in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journaled<V> {
    pub(super) id: u64,
    pub(super) value: V,
}

/// The scheduler underneath.
pub(super) type JournaledHandle<K, V, S> = Handle<K, Journaled<V>, S>;

/// A run as the scheduler underneath gives it.
pub(super) type JournaledRun<K, V> = Run<K, Journaled<V>>;

/// One run of a durable task, as the handler gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurableRun<K, V> {
    /// The task's key.
    pub key: K,
    /// Its value.
    pub value: V,
    /// How long after its deadline the handler was called; in a run after a crash, since the start.
    pub late: Duration,
    /// The fencing token: greater than that of every run that began before it, across crashes too. A service to
    /// which handlers write can refuse a token below the greatest that it has seen. So it refuses the run of a process
    /// that was thought dead.
    pub token: u64,
}
