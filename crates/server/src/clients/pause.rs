//! CLIENT PAUSE: holds back all commands, or those that write, of all clients for a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tidewheel_keyspace::rows::Flags;
use tidewheel_keyspace::{Command, Gate, PAUSED};

use crate::clients::checks;

/// All bits of a pause.
const BITS: u8 = checks::PAUSE_ALL | checks::PAUSE_WRITE | PAUSED;

/// Returns true if a pause of writes holds a command back: it changes data, or the public servers
/// would tell replicas of it.
pub(crate) fn is_write(row: &Command) -> bool {
    row.flags.has(Flags::WRITE) || row.flags.has(Flags::MAY_REPLICATE)
}

/// The pause in force, if any. Its bits are the keyspace gate's: those are read before every
/// command.
#[derive(Debug)]
pub(crate) struct Pause {
    gate: Arc<Gate>,
    until: AtomicU64,
    change: Mutex<()>,
}

impl Pause {
    pub(crate) fn new(gate: Arc<Gate>) -> Self {
        Self {
            gate,
            until: AtomicU64::new(0),
            change: Mutex::default(),
        }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.gate.bits() & PAUSED != 0
    }

    /// Returns which commands it holds back, for INFO.
    pub(crate) fn actions(&self) -> &'static str {
        match self.gate.bits() {
            bits if bits & PAUSED == 0 => "none",
            bits if bits & checks::PAUSE_ALL != 0 => "all",
            _ => "write",
        }
    }

    /// Returns the tick at which it ends.
    pub(crate) fn until(&self) -> u64 {
        self.until.load(Ordering::Relaxed)
    }

    /// Starts a pause or extends the one in force, which gets neither shorter nor milder.
    pub(crate) fn start(&self, all: bool, until: u64) {
        let change = self.change.lock();
        let until = if self.is_on() {
            until.max(self.until())
        } else {
            until
        };
        self.until.store(until, Ordering::Relaxed);
        let bit = if all {
            checks::PAUSE_ALL
        } else {
            checks::PAUSE_WRITE
        };
        self.gate.set(bit | PAUSED);
        drop(change);
    }

    /// Ends the pause.
    pub(crate) fn end(&self) {
        let change = self.change.lock();
        self.gate.clear(BITS);
        drop(change);
    }

    /// Returns true if the pause is on and its time is over.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.is_on() && now >= self.until()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_pause_makes_a_pause_neither_shorter_nor_weaker() {
        let gate_of_all = Arc::new(Gate::default());
        let bits = || gate_of_all.bits();
        let pause = Pause::new(Arc::clone(&gate_of_all));
        pause.start(true, 100);
        pause.start(false, 50);
        assert_eq!(bits() & checks::PAUSE_ALL, checks::PAUSE_ALL);
        assert!(!pause.is_due(99));
        assert!(pause.is_due(100));
        pause.end();
        assert!(!pause.is_due(101));
        pause.start(false, 200);
        assert_eq!(bits(), checks::PAUSE_WRITE | PAUSED);
        pause.end();
        assert!(!pause.is_on());
    }
}
