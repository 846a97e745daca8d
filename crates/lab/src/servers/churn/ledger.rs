//! The ledger counts the keys that are alive by the client's own books: confirmed keys, and their
//! deadlines.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The number of keys that were confirmed, and of those that fall due in each millisecond.
#[derive(Debug)]
pub(super) struct Ledger {
    start_ns: u64,
    pub(super) confirmed: AtomicU64,
    due_in_ms: Vec<AtomicU32>,
}

impl Ledger {
    pub(super) fn new(start_ns: u64, length_ms: u64, px_max: u64) -> Self {
        // A batch that a stalled server confirms late lands in the last bucket at worst.
        let buckets = length_ms + px_max + 60_000;
        Self {
            start_ns,
            confirmed: AtomicU64::new(0),
            due_in_ms: (0..buckets).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Keys with these times to live, sent at `sent_ns`, have been confirmed. The server counts
    /// from when it read the SET, a little later: a key is alive at least as long as is booked
    /// here.
    pub(super) fn book(&self, sent_ns: u64, px_ms: &[u64]) {
        let sent_ms = sent_ns.saturating_sub(self.start_ns).div_ceil(1_000_000);
        for px_ms in px_ms {
            let bucket = ((sent_ms + px_ms) as usize).min(self.due_in_ms.len() - 1);
            self.due_in_ms[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.confirmed
            .fetch_add(px_ms.len() as u64, Ordering::Relaxed);
    }

    /// Keys alive at `at_ns`, of those confirmed by then.
    pub(super) fn live(&self, at_ns: u64, confirmed: u64) -> u64 {
        let now_ms = (at_ns.saturating_sub(self.start_ns) / 1_000_000) as usize;
        let due = self.due_in_ms.iter().take(now_ms + 1);
        let dead: u64 = due
            .map(|count| u64::from(count.load(Ordering::Relaxed)))
            .sum();
        confirmed.saturating_sub(dead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ledger_knows_who_is_alive_at_every_millisecond() {
        let ms = 1_000_000;
        let ledger = Ledger::new(7 * ms, 100, 50);
        ledger.book(7 * ms, &[10, 20]);
        ledger.book(9 * ms, &[10]);
        assert_eq!(ledger.confirmed.load(Ordering::Relaxed), 3);
        assert_eq!(ledger.live(7 * ms, 3), 3);
        assert_eq!(ledger.live(17 * ms - 1, 3), 3);
        assert_eq!(ledger.live(17 * ms, 3), 2);
        assert_eq!(ledger.live(19 * ms, 3), 1);
        assert_eq!(ledger.live(27 * ms, 3), 0);
        assert_eq!(ledger.live(9_999_999 * ms, 3), 0);
    }
}
