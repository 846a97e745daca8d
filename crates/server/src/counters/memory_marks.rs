//! What is remembered of the memory in use: its peak, and for how long it was above `maxmemory`.
//!
//! Loops look once in a tick, and before they sleep.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use tidewheel_keyspace::{Keyspace, Time};

/// What is remembered of the memory in use.
#[derive(Debug, Default)]
pub(crate) struct MemoryMarks {
    peak: AtomicU64,
    /// The wall time of the peak, in seconds.
    peak_s: AtomicI64,
    /// The tick since which the limit is exceeded; 0: it is not.
    above_since: AtomicU64,
    /// Milliseconds for which it was exceeded before that.
    above_ms: AtomicU64,
}

impl MemoryMarks {
    /// Looks at the memory in use.
    pub(crate) fn note(&self, keyspace: &Keyspace, time: Time) {
        let used = keyspace.used_memory();
        if used > self.peak.load(Relaxed) {
            self.peak.fetch_max(used, Relaxed);
            self.peak_s.store(time.wall_ms() / 1000, Relaxed);
        }
        let since = self.above_since.load(Relaxed);
        if keyspace.is_above_limit() == (since > 0) {
            return;
        }
        // Of several loops that see a change one notes it.
        let now = if since > 0 { 0 } else { time.tick };
        let changed = self
            .above_since
            .compare_exchange(since, now, Relaxed, Relaxed);
        if changed.is_ok() && since > 0 {
            let ms = time.tick.saturating_sub(since);
            self.above_ms.fetch_add(ms, Relaxed);
        }
    }

    /// The most bytes that were seen, and the wall time in seconds at which they were.
    pub(crate) fn peak(&self) -> (u64, i64) {
        (self.peak.load(Relaxed), self.peak_s.load(Relaxed))
    }

    /// Milliseconds for which the limit has been exceeded this time, and in all.
    pub(crate) fn above_ms(&self, tick: u64) -> (u64, u64) {
        let current = match self.above_since.load(Relaxed) {
            0 => 0,
            since => tick.saturating_sub(since),
        };
        (current, self.above_ms.load(Relaxed) + current)
    }

    /// Forgets for how long the limit was exceeded (CONFIG RESETSTAT).
    pub(crate) fn reset(&self, time: Time) {
        self.above_ms.store(0, Relaxed);
        let since = self.above_since.load(Relaxed);
        if since > 0 {
            // If that changes meanwhile, it has just ended.
            let _ = (self.above_since).compare_exchange(since, time.tick, Relaxed, Relaxed);
        }
    }
}
