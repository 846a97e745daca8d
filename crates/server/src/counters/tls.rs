//! Counts of TLS handshakes, which the threads for handshakes share.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Handshakes since the start, or since CONFIG RESETSTAT.
#[derive(Debug, Default)]
pub(crate) struct TlsCounts {
    /// Those that have led to a connection.
    pub(crate) done: AtomicU64,
    /// Those that the peer, or a fault of it, has ended.
    pub(crate) failed: AtomicU64,
    /// Those that took too long.
    pub(crate) timed_out: AtomicU64,
    /// Those that were given up for newer ones.
    pub(crate) crowded_out: AtomicU64,
    /// Connections refused for `maxclients`.
    pub(crate) rejected: AtomicU64,
    /// Those that have begun and are not over.
    pub(crate) half_open: AtomicUsize,
}

impl TlsCounts {
    /// Counts from zero again; those that are half-open stay counted.
    pub(crate) fn reset(&self) {
        let counts = [
            &self.done,
            &self.failed,
            &self.timed_out,
            &self.crowded_out,
            &self.rejected,
        ];
        for count in counts {
            count.store(0, Ordering::Relaxed);
        }
    }
}
