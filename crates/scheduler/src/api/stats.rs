//! A scheduler's statistics: counts, lateness, the number of tasks by due time.

use std::time::Duration;

use crate::ground::lateness::Lateness;

/// A scheduler's counts of past events, and of the tasks that it holds.
///
/// At each moment, a task that has fired is in one of `queued`, `running`, `completed`, `panicked`,
/// `recalled` and `dropped`, and one that has not is in `pending`. What
/// [`stop`](crate::Scheduler::stop) returns is in none of them any more.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Tasks that wait for their time.
    pub pending: usize,
    /// Tasks whose time has come and that wait for a worker, also those that are on their way to
    /// the workers' queue.
    pub queued: usize,
    /// Handlers that are running.
    pub running: usize,
    /// Runs that go on after their handler: futures of async handlers.
    pub deferred: usize,
    /// Futures of async handlers that panicked, or that their runtime dropped.
    pub failed: u64,
    /// Calls that set a task, a replaced one included.
    pub set: u64,
    /// Calls that moved a task.
    pub moved: u64,
    /// Tasks that were removed, drained ones included.
    pub removed: u64,
    /// Tasks whose time has come; each run of a periodic one counts.
    pub fired: u64,
    /// Handlers that came back.
    pub completed: u64,
    /// Handlers that panicked, and runs of periodic tasks that were lost because `Clone` did.
    pub panicked: u64,
    /// Tasks that were dropped because the queue was full:
    /// [`BackPressure::Drop`](crate::BackPressure).
    pub dropped: u64,
    /// Runs of periodic tasks that had fired and were not begun, because their task was removed
    /// first.
    pub recalled: u64,
    /// Runs of periodic tasks that were left out: [`CatchUp`](crate::CatchUp).
    pub missed: u64,
    /// The lateness of calls of handlers.
    pub lateness: Lateness,
}

/// The number of tasks that are due within a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Window {
    /// The tasks of this window are due before this much time has passed, and not in an earlier
    /// window.
    pub within: Duration,
    /// The number of tasks.
    pub tasks: u64,
}
