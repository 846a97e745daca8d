//! `Silence` measures for how long a connection has not answered.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidewheel_time::{monotonic_nanos, nanos};

/// A connection that has not answered for so long is given up.
const SILENT: Duration = Duration::from_secs(5);

/// The calls of a connection that have no answer yet. The server answers in order. So an answer
/// speaks for all calls before it, also for those that nobody waits for any more.
#[derive(Debug)]
pub(super) struct Silence(Mutex<Calls>);

#[derive(Debug)]
struct Calls {
    asked: u64,
    answered: u64,
    /// The time since which there are calls without an answer, or at which the last one was
    /// answered: by the monotonic clock, in nanoseconds.
    since: u64,
}

impl Silence {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Calls {
            asked: 0,
            answered: 0,
            since: monotonic_nanos(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins. Returns its number.
    pub(super) fn ask(&self) -> u64 {
        let mut calls = self.lock();
        if calls.asked == calls.answered {
            calls.since = monotonic_nanos();
        }
        calls.asked += 1;
        calls.asked
    }

    pub(super) fn answered(&self, call: u64) {
        let mut calls = self.lock();
        calls.answered = calls.answered.max(call);
        calls.since = monotonic_nanos();
    }

    /// True if a call has waited for too long.
    pub(super) fn is_long(&self) -> bool {
        let calls = self.lock();
        let passed = monotonic_nanos().saturating_sub(calls.since);
        calls.asked > calls.answered && passed >= nanos(SILENT)
    }
}
