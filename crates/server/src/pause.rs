//! CLIENT PAUSE: which commands of all clients wait, and until when.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::connection::gate;

/// The pause in force, if any.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// Bits of [`gate`]: read before every command, so on a line that is hardly ever written.
    bits: AtomicU8,
    until: AtomicU64,
    change: Mutex<()>,
}

impl Pause {
    /// The bits to check a command against.
    #[inline]
    pub(crate) fn bits(&self) -> u8 {
        self.bits.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.bits() != 0
    }

    /// The tick at which it ends.
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
            gate::PAUSE_ALL
        } else {
            gate::PAUSE_WRITE
        };
        self.bits.fetch_or(bit, Ordering::SeqCst);
        drop(change);
    }

    /// Ends the pause.
    pub(crate) fn end(&self) {
        let change = self.change.lock();
        self.bits.store(0, Ordering::SeqCst);
        drop(change);
    }

    /// Ends the pause if its time has come; true if this call did.
    pub(crate) fn end_if_due(&self, now: u64) -> bool {
        if !self.is_on() {
            return false;
        }
        let change = self.change.lock();
        let due = self.is_on() && now >= self.until();
        if due {
            self.bits.store(0, Ordering::SeqCst);
        }
        drop(change);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_gets_neither_shorter_nor_milder() {
        let pause = Pause::default();
        pause.start(true, 100);
        pause.start(false, 50);
        assert_eq!(pause.bits() & gate::PAUSE_ALL, gate::PAUSE_ALL);
        assert!(!pause.end_if_due(99));
        assert!(pause.end_if_due(100));
        assert!(!pause.end_if_due(101));
        pause.start(false, 200);
        assert_eq!(pause.bits(), gate::PAUSE_WRITE);
        pause.end();
        assert!(!pause.is_on());
    }
}
