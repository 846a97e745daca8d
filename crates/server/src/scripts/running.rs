//! The script that a loop runs now, as SCRIPT KILL sees it from another loop.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use parking_lot::Mutex;

/// No script runs.
const NONE: u8 = 0;
/// One runs that has changed nothing.
const RUNS: u8 = 1;
/// One runs that has changed data: ending it would leave half of that.
const WROTE: u8 = 2;
/// One runs that is to end.
const KILLED: u8 = 3;

/// Added to the state while it is a function that runs.
const FUNCTION: u8 = 4;

const BUSY_SCRIPT: &str = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or \
                           SHUTDOWN NOSAVE.";
const BUSY_FUNCTION: &str = "BUSY Redis is busy running a script. You can only call FUNCTION KILL \
                             or SHUTDOWN NOSAVE.";

/// Bytes of a running call that FUNCTION STATS shows.
pub(crate) const SHOWN_BYTES: usize = 64 << 10;

/// The state of one loop's script.
#[derive(Debug, Default)]
pub(crate) struct Running {
    state: AtomicU8,
    /// What has run for so long that others are refused.
    long: AtomicU8,
    /// What FUNCTION STATS shows of a function that runs for more than a moment.
    shown: Mutex<Option<Shown>>,
}

/// What runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Script,
    Function,
}

impl Kind {
    fn bits(self) -> u8 {
        match self {
            Self::Script => 0,
            Self::Function => FUNCTION,
        }
    }

    /// The kind in a state that is not [`NONE`].
    fn of(state: u8) -> Self {
        match state & FUNCTION {
            0 => Self::Script,
            _ => Self::Function,
        }
    }

    /// What others are told while it runs for long.
    pub(crate) fn busy(self) -> &'static str {
        match self {
            Self::Script => BUSY_SCRIPT,
            Self::Function => BUSY_FUNCTION,
        }
    }
}

/// A function that runs.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) name: String,
    pub(crate) command: Vec<Box<[u8]>>,
    pub(crate) began_ns: u64,
}

/// What SCRIPT KILL has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kill {
    Nothing,
    /// It is of the other kind.
    Other(Kind),
    Unkillable,
    Killed,
}

impl Running {
    pub(crate) fn begin(&self, kind: Kind) {
        self.state.store(RUNS | kind.bits(), Relaxed);
    }

    /// The script is about to change data. False if it was killed before.
    pub(crate) fn writes(&self) -> bool {
        let kind = self.state.load(Relaxed) & FUNCTION;
        let (runs, wrote) = (RUNS | kind, WROTE | kind);
        let noted = self.state.compare_exchange(runs, wrote, SeqCst, SeqCst);
        noted != Err(KILLED | kind)
    }

    /// Says what runs, for FUNCTION STATS.
    pub(crate) fn show(&self, shown: Option<Shown>) {
        *self.shown.lock() = shown;
    }

    pub(crate) fn shown(&self) -> Option<Shown> {
        self.shown.lock().clone()
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.state.load(Relaxed) & !FUNCTION == KILLED
    }

    pub(crate) fn end(&self) {
        self.state.store(NONE, Relaxed);
    }

    /// Says what has run for so long that others are refused.
    pub(crate) fn set_long(&self, kind: Option<Kind>) {
        let long = kind.map_or(NONE, |kind| RUNS | kind.bits());
        self.long.store(long, Relaxed);
    }

    pub(crate) fn long(&self) -> Option<Kind> {
        let long = self.long.load(Relaxed);
        (long != NONE).then(|| Kind::of(long))
    }

    /// Ends the script, if it has changed nothing and is of that kind.
    pub(crate) fn kill(&self, kind: Kind) -> Kill {
        let (runs, killed) = (RUNS | kind.bits(), KILLED | kind.bits());
        match self.state.compare_exchange(runs, killed, SeqCst, SeqCst) {
            Ok(_) => Kill::Killed,
            Err(NONE) => Kill::Nothing,
            Err(state) if state & !FUNCTION == WROTE => Kill::Unkillable,
            Err(state) if state == killed => Kill::Killed,
            Err(state) => Kill::Other(Kind::of(state)),
        }
    }
}
