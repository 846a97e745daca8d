//! What a strategy of giving dead objects' memory back must answer, and what is counted of it.

use super::course::Event;

/// A way to hold objects that have times to live, in a cache without a limit.
pub(super) trait Strategy {
    /// What it does of its own accord, up to and including now.
    fn run_to(&mut self, now_ms: u64);
    /// What a client does; the strategy has run to its time.
    fn apply(&mut self, event: &Event);
    /// Bytes of keys and values that it holds, dead or alive.
    fn held_bytes(&self) -> u64;
    /// What it has counted.
    fn ledger(self: Box<Self>) -> Ledger;
}

/// The work of a strategy, and how late it was done.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// For each object that was dead when its memory came back: its deadline, and how long that was past.
    pub(super) late_ms: Vec<(u64, u64)>,
    /// Keys looked at beyond those that clients asked for.
    pub(super) looked: u64,
}

impl Ledger {
    /// An object's memory came back now.
    pub(super) fn freed(&mut self, deadline_ms: u64, now_ms: u64) {
        if let Some(late_ms) = now_ms.checked_sub(deadline_ms) {
            self.late_ms.push((deadline_ms, late_ms));
        }
    }

    /// How late, in the order in which memory came back.
    #[cfg(test)]
    pub(super) fn lateness(&self) -> Vec<u64> {
        self.late_ms.iter().map(|(_, late_ms)| *late_ms).collect()
    }
}
