//! A log-linear histogram of small numbers, written by many threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Each power of two is cut into this many equal parts: at most 12.5 % of error.
const PARTS: usize = 8;
const PARTS_BITS: u32 = PARTS.trailing_zeros();
/// Powers of two that are told apart; values above the last are counted in it.
const POWERS: usize = 40;
const BUCKETS: usize = PARTS * POWERS;

/// Counts of `u64` values; exact below 8, within 12.5 % above.
#[derive(Debug)]
pub struct Histogram {
    counts: Box<[AtomicU64; BUCKETS]>,
    max: AtomicU64,
}

/// What a histogram held when it was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// Values recorded.
    pub count: u64,
    /// Half are at or below this.
    pub p50: u64,
    /// 99 % are at or below this.
    pub p99: u64,
    /// 99.9 % are at or below this.
    pub p999: u64,
    /// The greatest, exactly.
    pub max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: Box::new([const { AtomicU64::new(0) }; BUCKETS]),
            max: AtomicU64::new(0),
        }
    }
}

impl Histogram {
    /// Counts a value `times` times.
    pub fn record(&self, value: u64, times: u64) {
        self.counts[bucket(value)].fetch_add(times, Relaxed);
        // Reading first keeps the line shared once the maximum has settled.
        if value > self.max.load(Relaxed) {
            self.max.fetch_max(value, Relaxed);
        }
    }

    /// The quantiles so far: upper bounds of the buckets that they fall into, never above the maximum.
    #[must_use]
    pub fn quantiles(&self) -> Quantiles {
        let counts: Vec<u64> = self.counts.iter().map(|c| c.load(Relaxed)).collect();
        let count: u64 = counts.iter().sum();
        let max = self.max.load(Relaxed);
        let at = |per_mille: u64| {
            let rank = (count * per_mille).div_ceil(1000).max(1);
            let mut seen = 0;
            for (i, n) in counts.iter().enumerate() {
                seen += n;
                if seen >= rank {
                    return upper_bound(i).min(max);
                }
            }
            max
        };
        if count == 0 {
            return Quantiles::default();
        }
        Quantiles {
            count,
            p50: at(500),
            p99: at(990),
            p999: at(999),
            max,
        }
    }

    /// Forgets everything.
    pub fn reset(&self) {
        for count in self.counts.iter() {
            count.store(0, Relaxed);
        }
        self.max.store(0, Relaxed);
    }
}

fn bucket(value: u64) -> usize {
    if value < PARTS as u64 {
        return value as usize;
    }
    let power = value.ilog2();
    let part = (value >> (power - PARTS_BITS)) as usize & (PARTS - 1);
    ((power - PARTS_BITS + 1) as usize * PARTS + part).min(BUCKETS - 1)
}

fn upper_bound(bucket: usize) -> u64 {
    if bucket == BUCKETS - 1 {
        return u64::MAX;
    }
    let (power, part) = (bucket / PARTS, (bucket % PARTS) as u64);
    if power == 0 {
        return part;
    }
    let shift = power as u32 - 1;
    ((PARTS as u64 + part + 1) << shift) - 1
}

/// Gathers runs of equal values, so that a thousand keys of one tick cost one atomic addition.
#[derive(Debug)]
pub(crate) struct Runs<'a> {
    histogram: &'a Histogram,
    value: u64,
    times: u64,
}

impl<'a> Runs<'a> {
    pub(crate) fn new(histogram: &'a Histogram) -> Self {
        Self {
            histogram,
            value: 0,
            times: 0,
        }
    }

    pub(crate) fn record(&mut self, value: u64) {
        if self.times > 0 && self.value != value {
            self.histogram.record(self.value, self.times);
            self.times = 0;
        }
        self.value = value;
        self.times += 1;
    }
}

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        if self.times > 0 {
            self.histogram.record(self.value, self.times);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_within_its_bucket() {
        let mut last = 0;
        for value in (0..10_000).chain((14..43).flat_map(|p| [(1 << p) - 1, 1 << p, (1 << p) + 1]))
        {
            let i = bucket(value);
            assert!(i >= last, "{value}");
            last = i;
            if i < BUCKETS - 1 {
                assert!(upper_bound(i) >= value);
                assert!(upper_bound(i) - value <= value / PARTS as u64, "{value}");
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_and_reset() {
        let h = Histogram::default();
        assert_eq!(h.quantiles(), Quantiles::default());
        let mut runs = Runs::new(&h);
        for _ in 0..990 {
            runs.record(3);
        }
        for _ in 0..9 {
            runs.record(100);
        }
        runs.record(5_000);
        drop(runs);
        let q = h.quantiles();
        assert_eq!((q.count, q.p50, q.p99, q.max), (1000, 3, 3, 5_000));
        assert!((100..=112).contains(&q.p999), "{q:?}");
        h.reset();
        assert_eq!(h.quantiles(), Quantiles::default());
    }
}
