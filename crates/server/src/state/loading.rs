//! How much of the snapshot file is loaded, for INFO and the log.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// How much of a file is loaded. One thread writes it, all others read it.
#[derive(Debug, Default)]
pub(crate) struct Loading {
    /// Wall time in seconds.
    pub(crate) started_s: AtomicI64,
    pub(crate) total_bytes: AtomicU64,
    pub(crate) read_bytes: AtomicU64,
}

impl Loading {
    pub(crate) fn begin(&self, now_s: i64, total_bytes: u64) {
        self.started_s.store(now_s, Relaxed);
        self.total_bytes.store(total_bytes, Relaxed);
        self.read_bytes.store(0, Relaxed);
    }

    /// How much of a hundred is loaded.
    pub(crate) fn percent(&self) -> f64 {
        let total = self.total_bytes.load(Relaxed).max(1);
        self.read_bytes.load(Relaxed) as f64 * 100.0 / total as f64
    }

    /// The seconds that are left, if it goes on as it has gone so far. As with other servers 1
    /// while nothing is loaded.
    pub(crate) fn seconds_left(&self, now_s: i64) -> u64 {
        let read = u128::from(self.read_bytes.load(Relaxed));
        let total = u128::from(self.total_bytes.load(Relaxed));
        let took_s = now_s.saturating_sub(self.started_s.load(Relaxed)).max(0);
        match read {
            0 => 1,
            _ => (took_s as u128 * total.saturating_sub(read) / read) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_was_read() {
        let loading = Loading::default();
        loading.begin(100, 1000);
        assert_eq!((loading.percent(), loading.seconds_left(107)), (0.0, 1));
        loading.read_bytes.store(250, Relaxed);
        assert_eq!((loading.percent(), loading.seconds_left(110)), (25.0, 30));
        // The wall clock went back.
        assert_eq!(loading.seconds_left(7), 0);
        // A file that has grown.
        loading.read_bytes.store(2000, Relaxed);
        assert_eq!(loading.seconds_left(110), 0);
    }
}
