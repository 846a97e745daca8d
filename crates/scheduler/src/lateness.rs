//! How late handlers began: a log-linear histogram of microseconds, written by many threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Each power of two is cut into this many parts: at most 12.5 % of error.
const PARTS: u64 = 8;
const PARTS_BITS: u32 = PARTS.trailing_zeros();
/// The last bucket also takes what is above it: more than 2^34 µs, five hours.
const BUCKETS: usize = 256;

/// Counts while they are written.
#[derive(Debug)]
pub(crate) struct Recorder {
    counts: Box<[AtomicU64]>,
    max_us: AtomicU64,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            max_us: AtomicU64::new(0),
        }
    }

    pub(crate) fn record(&self, late: Duration) {
        let us = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket(us)].fetch_add(1, Relaxed);
        // Reading first keeps the line shared once the maximum has settled.
        if us > self.max_us.load(Relaxed) {
            self.max_us.fetch_max(us, Relaxed);
        }
    }

    pub(crate) fn read(&self) -> Lateness {
        Lateness {
            counts: self
                .counts
                .iter()
                .map(|count| count.load(Relaxed))
                .collect(),
            max_us: self.max_us.load(Relaxed),
        }
    }
}

/// How late handlers began, from the deadline that was asked for (rounded up to a millisecond).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lateness {
    counts: Vec<u64>,
    max_us: u64,
}

impl Lateness {
    /// Runs that were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The latest, exactly.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.max_us)
    }

    /// Upper bound of the lateness of the given part of all runs, at most 12.5 % above it; 0.99 for p99.
    /// Zero when nothing was counted.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Duration {
        let count = self.count();
        let rank = ((count as f64 * part).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for (at, n) in self.counts.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return Duration::from_micros(upper_bound(at).min(self.max_us));
            }
        }
        self.max()
    }

    /// Upper bounds and counts of the windows that are not empty, shortest first.
    pub fn windows(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let windows = self.counts.iter().enumerate();
        windows
            .filter(|(_, n)| **n > 0)
            .map(|(at, n)| (Duration::from_micros(upper_bound(at)), *n))
    }
}

fn bucket(us: u64) -> usize {
    if us < PARTS {
        return us as usize;
    }
    let power = us.ilog2();
    let part = (us >> (power - PARTS_BITS)) & (PARTS - 1);
    let at = u64::from(power - PARTS_BITS + 1) * PARTS + part;
    (at as usize).min(BUCKETS - 1)
}

fn upper_bound(bucket: usize) -> u64 {
    if bucket >= BUCKETS - 1 {
        return u64::MAX;
    }
    let (power, part) = (bucket as u64 / PARTS, bucket as u64 % PARTS);
    match power.checked_sub(1) {
        None => part,
        Some(shift) => ((PARTS + part + 1) << shift) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_at_or_below_its_bound_and_near_it() {
        for us in (0..5000).chain((5..33).map(|power| (1 << power) + 3)) {
            let bound = upper_bound(bucket(us));
            assert!(us <= bound && bound - us <= us / 8, "{us} {bound}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_what_was_recorded() {
        let recorder = Recorder::new();
        assert_eq!(recorder.read().quantile(0.99), Duration::ZERO);
        for us in 1..=1000 {
            recorder.record(Duration::from_micros(us));
        }
        let lateness = recorder.read();
        assert_eq!(lateness.count(), 1000);
        let p50 = lateness.quantile(0.5).as_micros();
        assert!((500..=563).contains(&p50), "{p50}");
        assert_eq!(lateness.quantile(1.0), lateness.max());
        assert_eq!(lateness.windows().map(|(_, n)| n).sum::<u64>(), 1000);
    }
}
