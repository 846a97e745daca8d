//! The script that a loop runs now, as SCRIPT KILL sees it from another loop.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU8};

/// No script runs.
const NONE: u8 = 0;
/// One runs that has changed nothing.
const RUNS: u8 = 1;
/// One runs that has changed data: ending it would leave half of that.
const WROTE: u8 = 2;
/// One runs that is to end.
const KILLED: u8 = 3;

/// The state of one loop's script.
#[derive(Debug, Default)]
pub(crate) struct Running {
    state: AtomicU8,
    /// It has run for so long that others are refused.
    long: AtomicBool,
}

/// What SCRIPT KILL has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kill {
    Nothing,
    Unkillable,
    Killed,
}

impl Running {
    pub(crate) fn begin(&self) {
        self.state.store(RUNS, Relaxed);
    }

    /// The script is about to change data. False if it was killed before.
    pub(crate) fn writes(&self) -> bool {
        let noted = self.state.compare_exchange(RUNS, WROTE, SeqCst, SeqCst);
        noted != Err(KILLED)
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.state.load(Relaxed) == KILLED
    }

    pub(crate) fn end(&self) {
        self.state.store(NONE, Relaxed);
    }

    /// Says whether the script has run for so long that others are refused.
    pub(crate) fn set_long(&self, long: bool) {
        self.long.store(long, Relaxed);
    }

    pub(crate) fn is_long(&self) -> bool {
        self.long.load(Relaxed)
    }

    /// Ends the script, if it has changed nothing.
    pub(crate) fn kill(&self) -> Kill {
        match self.state.compare_exchange(RUNS, KILLED, SeqCst, SeqCst) {
            Ok(_) | Err(KILLED) => Kill::Killed,
            Err(WROTE) => Kill::Unkillable,
            Err(_) => Kill::Nothing,
        }
    }
}
