//! A log-linear histogram of small numbers, written by many threads: how late, how long.

use std::fmt;
use std::iter;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Each power of two is cut into this many equal parts: at most 12.5 % of error.
const PARTS: usize = 8;
const PARTS_BITS: u32 = PARTS.trailing_zeros();
/// Powers of two that are told apart; values above the last are counted in it.
const POWERS: usize = 40;
const BUCKETS: usize = PARTS * POWERS;

/// Counts of `u64` values: exact below 8, within 12.5 % above.
///
/// Recording is one atomic addition and one load, whatever the number of values; nothing is locked.
/// Anything up to 2^42 fits, which is 50 days of microseconds; what is above is counted as the last
/// bucket's.
///
/// ```
/// use tidewheel_time::Histogram;
///
/// let lateness_us = Histogram::default();
/// lateness_us.record(3, 99);
/// lateness_us.record(1000, 1);
/// let quantiles = lateness_us.quantiles();
/// assert_eq!((quantiles.count, quantiles.p99, quantiles.max), (100, 3, 1000));
/// ```
pub struct Histogram {
    counts: Box<[AtomicU64; BUCKETS]>,
    max: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: Box::new([const { AtomicU64::new(0) }; BUCKETS]),
            max: AtomicU64::new(0),
        }
    }
}

/// Its quantiles.
impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read().fmt(f)
    }
}

impl Histogram {
    /// Counts a value `times` times.
    // Inlined, it took registers from the loops that remove entries, which cost more than the call.
    #[inline(never)]
    pub fn record(&self, value: u64, times: u64) {
        self.counts[bucket(value)].fetch_add(times, Relaxed);
        // Reading first keeps the line shared once the maximum has settled.
        if value > self.max.load(Relaxed) {
            self.max.fetch_max(value, Relaxed);
        }
    }

    /// Records runs of values of one bucket with one atomic addition each.
    #[must_use]
    pub fn runs(&self) -> Runs<'_> {
        Runs {
            histogram: self,
            low: 0,
            width: 0,
            max: 0,
            times: 0,
        }
    }

    /// Returns what was counted so far. Buckets are read one after the other, not at one instant.
    #[must_use]
    pub fn read(&self) -> Counts {
        Counts {
            counts: self.counts.iter().map(|n| n.load(Relaxed)).collect(),
            max: self.max.load(Relaxed),
        }
    }

    /// The quantiles so far.
    #[must_use]
    pub fn quantiles(&self) -> Quantiles {
        self.read().quantiles()
    }

    /// The counts by power of two: `[0]` of zeros, `[i]` of `2^(i-1) ..< 2^i`, the last also of all
    /// above.
    #[must_use]
    pub fn by_power<const N: usize>(&self) -> [u64; N] {
        // The last bucket's values can no longer be told apart.
        const { assert!(N > 0 && N <= power(BUCKETS - 1) + 1) };
        let mut powers = [0; N];
        for (i, n) in self.counts.iter().enumerate() {
            powers[power(i).min(N - 1)] += n.load(Relaxed);
        }
        powers
    }

    /// Forgets everything.
    pub fn reset(&self) {
        for count in self.counts.iter() {
            count.store(0, Relaxed);
        }
        self.max.store(0, Relaxed);
    }
}

/// Gathers runs of values of one bucket, so that a thousand entries of about one time cost one
/// atomic addition. The last run is recorded when this is dropped.
#[derive(Debug)]
pub struct Runs<'a> {
    histogram: &'a Histogram,
    /// The least value of the run's bucket, and how far the greatest is from it.
    low: u64,
    width: u64,
    /// The run's greatest value and its length.
    max: u64,
    times: u64,
}

impl Runs<'_> {
    /// Counts a value once.
    #[inline]
    pub fn record(&mut self, value: u64) {
        if value.wrapping_sub(self.low) > self.width {
            self.turn_to(value);
        }
        self.max = self.max.max(value);
        self.times += 1;
    }

    /// Ends the run and begins an empty one in the value's bucket.
    #[inline(never)]
    fn turn_to(&mut self, value: u64) {
        self.histogram.record(self.max, self.times);
        let bucket = bucket(value);
        self.low = bucket
            .checked_sub(1)
            .map_or(0, |below| upper_bound(below) + 1);
        self.width = upper_bound(bucket) - self.low;
        self.max = value;
        self.times = 0;
    }
}

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        if self.times > 0 {
            self.histogram.record(self.max, self.times);
        }
    }
}

/// The contents of a histogram when it was read.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Empty, or one for each bucket.
    counts: Vec<u64>,
    max: u64,
}

/// Their quantiles.
impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.quantiles().fmt(f)
    }
}

impl Counts {
    /// Values recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The greatest, exactly; 0 when nothing was recorded.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Upper bound of the value of this rank, from 1 for the least: that of its bucket, never above
    /// the maximum, which is also the answer for ranks beyond the last.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> u64 {
        let mut seen = 0;
        for (i, n) in self.counts.iter().enumerate() {
            seen += n;
            if seen >= rank.max(1) {
                return upper_bound(i).min(self.max);
            }
        }
        self.max
    }

    /// The quantiles that are usually asked for.
    #[must_use]
    pub fn quantiles(&self) -> Quantiles {
        let count = self.count();
        let at = |per_mille: u64| self.at_rank((count * per_mille).div_ceil(1000));
        Quantiles {
            count,
            p50: at(500),
            p99: at(990),
            p999: at(999),
            max: self.max,
        }
    }

    /// The values that were recorded after an earlier reading. Its maximum is that of all.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = earlier.counts.iter().copied().chain(iter::repeat(0));
        let added = self.counts.iter().zip(before);
        Self {
            counts: added.map(|(now, then)| now.saturating_sub(then)).collect(),
            max: self.max,
        }
    }

    /// Upper bounds and counts of the buckets that are not empty, least first.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let buckets = self.counts.iter().enumerate();
        buckets
            .filter(|(_, n)| **n > 0)
            .map(|(i, n)| (upper_bound(i), *n))
    }
}

/// A histogram's quantiles: upper bounds of the buckets that they fall into, never above the
/// maximum.
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

#[inline]
fn bucket(value: u64) -> usize {
    // Values below 16 keep all their bits; others the first and the PARTS_BITS after it.
    let shift = (value | PARTS as u64).ilog2() - PARTS_BITS;
    ((shift as usize * PARTS) + (value >> shift) as usize).min(BUCKETS - 1)
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

/// The bits that a bucket's values have.
const fn power(bucket: usize) -> usize {
    match bucket / PARTS {
        0 => (usize::BITS - bucket.leading_zeros()) as usize,
        above => above + PARTS_BITS as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> impl Iterator<Item = u64> {
        (0..10_000).chain((14..43).flat_map(|p| [(1 << p) - 1, 1 << p, (1 << p) + 1]))
    }

    #[test]
    fn every_value_lies_within_its_bucket() {
        let mut last = 0;
        for value in values() {
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
        let empty = h.read();
        let mut runs = h.runs();
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
        let earlier = h.read();
        assert_eq!(earlier.since(&empty), earlier);
        assert_eq!(earlier.since(&Counts::default()), earlier);
        h.record(100, 7);
        let since: Vec<_> = h.read().since(&earlier).buckets().collect();
        assert_eq!(since, [(103, 7)]);
        h.reset();
        assert_eq!(h.quantiles(), Quantiles::default());
    }

    /// It printed 320 numbers.
    #[test]
    fn what_is_printed_are_quantiles_and_no_buckets() {
        let h = Histogram::default();
        h.record(3, 99);
        h.record(5_000, 1);
        let expected = "Quantiles { count: 100, p50: 3, p99: 3, p999: 5000, max: 5000 }";
        assert_eq!(format!("{h:?}"), expected);
        assert_eq!(format!("{:?}", h.read()), expected);
    }

    #[test]
    fn runs_count_what_single_records_do() {
        let (one_by_one, in_runs) = (Histogram::default(), Histogram::default());
        drop(in_runs.runs());
        assert_eq!(in_runs.read().count(), 0, "nothing was recorded");
        let mut runs = in_runs.runs();
        let falling = values().collect::<Vec<_>>().into_iter().rev();
        let few = [0, 0, 7, 7, 7, 0, 9, 1 << 50, u64::MAX, 1 << 50, 1 << 20, 0];
        for value in few.into_iter().chain(values()).chain(falling) {
            one_by_one.record(value, 1);
            runs.record(value);
        }
        drop(runs);
        assert_eq!(in_runs.read(), one_by_one.read());
    }

    #[test]
    fn ranks_and_buckets_are_of_what_was_recorded() {
        let h = Histogram::default();
        let nothing = h.read();
        assert_eq!(
            (nothing.count(), nothing.max(), nothing.at_rank(1)),
            (0, 0, 0)
        );
        for value in 1..=1000 {
            h.record(value, 1);
        }
        let counts = h.read();
        assert_eq!((counts.count(), counts.max()), (1000, 1000));
        assert_eq!((counts.at_rank(0), counts.at_rank(1)), (1, 1));
        assert!((500..=563).contains(&counts.at_rank(500)));
        assert_eq!((counts.at_rank(1000), counts.at_rank(5000)), (1000, 1000));
        assert_eq!(counts.buckets().map(|(_, n)| n).sum::<u64>(), 1000);
        assert!(counts.buckets().is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn powers_of_two_are_told_apart_exactly() {
        const N: usize = 43;
        let h = Histogram::default();
        let mut expected = [0; N];
        for value in values().chain([u64::MAX]) {
            h.record(value, 2);
            let bits = (u64::BITS - value.leading_zeros()) as usize;
            expected[bits.min(N - 1)] += 2;
        }
        assert_eq!(h.by_power(), expected);
        let below_4: [u64; 4] = h.by_power();
        assert_eq!(below_4[..3], expected[..3]);
        assert_eq!(below_4[3], expected[3..].iter().sum::<u64>());
    }
}
