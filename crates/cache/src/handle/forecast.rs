//! The forecast: how many entries will expire when.

use std::hash::{BuildHasher, Hash};
use std::ops::Range;
use std::time::Duration;

use super::cache::Cache;

/// One window for what is due, and one for each power of two of milliseconds.
const WINDOWS: usize = 65;

/// A histogram of the deadlines ahead; made by [`Cache::forecast`].
///
/// Counts are of timer records. A deadline is counted in its own window, or in one next to it: far
/// ones wait in slots of the wheel that span a whole window or two, over which they are spread
/// evenly. An entry whose deadline was moved or that was removed is counted where it was until its
/// record is met or swept, which happens before such records outnumber the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    windows: [u64; WINDOWS],
}

impl Forecast {
    /// Entries whose time is over, which the driver has not removed yet.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.windows[0]
    }

    /// Iterates over all windows, nearest first: the range of time ahead, and the number of
    /// deadlines in it. The first is what is due; the others begin at 1, 2, 4, … ms and are as long
    /// as that.
    #[inline]
    pub fn windows(&self) -> impl Iterator<Item = (Range<Duration>, u64)> + '_ {
        self.windows
            .iter()
            .enumerate()
            .map(|(window, count)| (begin(window)..end(window), *count))
    }

    /// About how many entries expire within a time from now, those that are due included. Of the
    /// window that the time ends in, the part that it covers is counted as if its deadlines were
    /// even.
    #[must_use]
    #[inline]
    pub fn due_within(&self, time: Duration) -> u64 {
        let mut sum = 0u64;
        for (range, count) in self.windows() {
            if range.end <= time {
                sum = sum.saturating_add(count);
                continue;
            }
            if range.start <= time {
                let covered = (time - range.start).as_secs_f64();
                let length = (range.end - range.start).as_secs_f64();
                let part = count as f64 * (covered / length);
                sum = sum.saturating_add(part as u64);
            }
            break;
        }
        sum
    }

    /// Entries that have a deadline, about.
    #[must_use]
    #[inline]
    pub fn total(&self) -> u64 {
        self.windows
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }
}

fn begin(window: usize) -> Duration {
    match window {
        0 => Duration::ZERO,
        _ => Duration::from_millis(1 << (window - 1)),
    }
}

fn end(window: usize) -> Duration {
    match window {
        0 => Duration::from_millis(1),
        64 => Duration::from_millis(u64::MAX),
        _ => Duration::from_millis(1 << window),
    }
}

/// # Forecast
impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Counts the entries that will expire, in windows that double. Costs as much as there are
    /// occupied slots in the shards' wheels, not entries. Not a point in time: shard after shard.
    #[must_use]
    pub fn forecast(&self) -> Forecast {
        let mut windows = [0; WINDOWS];
        let now = self.inner.now().tick();
        for cell in &self.inner.shards {
            self.inner.read(cell).store.forecast(now, &mut windows);
        }
        Forecast { windows }
    }
}
