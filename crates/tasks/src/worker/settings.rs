//! The settings of a worker.

use std::time::Duration;

use crate::shape::retry::Retry;

/// The numbers of a worker.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) name: String,
    /// Tasks are claimed so far ahead.
    pub(crate) lookahead: Duration,
    pub(crate) lease: Duration,
    /// Claims that are held or running, at most.
    pub(crate) held: usize,
    /// The queues that it claims from; none for all.
    pub(crate) queues: Vec<String>,
    /// The time from one question for claims to the next.
    pub(crate) poll: Duration,
    /// The time limit of a call of the engine.
    pub(crate) limit: Duration,
    pub(crate) retry: Retry,
    pub(crate) strict: bool,
    /// Threads that handlers hold as long as they run; `None` if they hold none.
    pub(crate) threads: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: format!("worker-{}", std::process::id()),
            lookahead: Duration::from_secs(10),
            lease: Duration::from_secs(8),
            held: 10_000,
            queues: Vec::new(),
            poll: Duration::from_millis(500),
            limit: Duration::from_secs(2),
            retry: Retry::default(),
            strict: false,
            threads: None,
        }
    }
}
