//! Closed-loop latencies are a log of every request, which is cut into windows after the fact.
//!
//! When the keys are gone is known only after it happened, so a thread that recorded into one
//! histogram per phase would have to guess. A log costs 16 bytes a request and guesses nothing.

use hdrhistogram::Histogram;

/// Longer latencies are recorded as this long.
const LONGEST_NS: u64 = 600_000_000_000;
/// Room for 64M requests, 1 GiB: more than one connection sends while a burst is watched.
const MAX_SAMPLES: usize = 1 << 26;

/// One request of a closed loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) end_ns: u64,
    pub(crate) latency_ns: u64,
}

impl Sample {
    fn start_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.latency_ns)
    }
}

/// Every request of one thread. Room for all is reserved, and taken when it is used: a vector that
/// grows would be copied between two requests.
#[derive(Debug)]
pub(crate) struct Log {
    samples: Vec<Sample>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            samples: Vec::with_capacity(MAX_SAMPLES),
        }
    }
}

impl Log {
    pub(crate) fn push(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    /// The requests that were over before `end_ns` and began at `start_ns` or later.
    pub(crate) fn within(&self, start_ns: u64, end_ns: u64) -> Latencies {
        self.those(|sample| sample.start_ns() >= start_ns && sample.end_ns < end_ns)
    }

    /// The requests that were under way at some moment of the window. A stall that begins just
    /// before it or ends just after it is the window's.
    pub(crate) fn touching(&self, start_ns: u64, end_ns: u64) -> Latencies {
        self.those(|sample| sample.end_ns >= start_ns && sample.start_ns() <= end_ns)
    }

    /// The number of requests that ended within the window.
    pub(crate) fn ended_within(&self, start_ns: u64, end_ns: u64) -> u64 {
        let window = start_ns..end_ns;
        let ended = self.iter().filter(|sample| window.contains(&sample.end_ns));
        ended.count() as u64
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter()
    }

    fn those(&self, wanted: impl Fn(&Sample) -> bool) -> Latencies {
        let mut latencies = Latencies::default();
        self.iter()
            .filter(|sample| wanted(sample))
            .for_each(|s| latencies.record(s.latency_ns));
        latencies
    }
}

/// A histogram of latencies, with the count that percentiles hide.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    histogram: Histogram<u64>,
    pub(crate) over_1ms: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            histogram: Histogram::new_with_bounds(1, LONGEST_NS, 3)
                .expect("the bounds are constants that the histogram accepts"),
            over_1ms: 0,
        }
    }
}

impl Latencies {
    pub(crate) fn record(&mut self, latency_ns: u64) {
        self.histogram.saturating_record(latency_ns);
        self.over_1ms += u64::from(latency_ns > 1_000_000);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let added = self.histogram.add(&other.histogram);
        added.expect("histograms of one shape");
        self.over_1ms += other.over_1ms;
    }

    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    pub(crate) fn mean_us(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.histogram.mean() / 1e3)
    }

    /// `None` where there was no request, as in all that follows.
    pub(crate) fn at_us(&self, quantile: f64) -> Option<f64> {
        (self.count() > 0).then(|| self.histogram.value_at_quantile(quantile) as f64 / 1e3)
    }

    pub(crate) fn max_ms(&self) -> Option<f64> {
        Some(self.at_us(1.0)? / 1e3)
    }

    /// Percentiles and the maximum in microseconds, by their names in figures.
    pub(crate) fn percentiles(&self) -> [(&'static str, Option<f64>); 5] {
        let names = ["p50", "p99", "p999", "p9999", "max"];
        let quantiles = [0.5, 0.99, 0.999, 0.9999, 1.0];
        std::array::from_fn(|at| (names[at], self.at_us(quantiles[at])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn log(samples: &[(u64, u64)]) -> Log {
        let mut log = Log::default();
        for &(start_ns, end_ns) in samples {
            let latency_ns = end_ns - start_ns;
            log.push(Sample { end_ns, latency_ns });
        }
        log
    }

    #[test]
    fn percentiles_are_right_to_a_thousandth() {
        let mut latencies = Latencies::default();
        (1..=100_000_u64).for_each(|us| latencies.record(us * 1_000));
        for quantile in [0.5, 0.99, 0.999, 1.0] {
            let (found, exact) = (latencies.at_us(quantile), quantile * 1e5);
            let error = found.map(|found| (found - exact).abs());
            assert!(error.is_some_and(|error| error <= exact / 1e3), "{found:?}");
        }
        assert_eq!((latencies.count(), latencies.over_1ms), (100_000, 99_000));
    }

    #[test]
    fn a_stall_across_an_edge_belongs_to_the_window() {
        // One before, one across the start, one inside, one across the end, one after.
        let log = log(&[
            (0, 9 * MS),
            (9 * MS, 12 * MS),
            (12 * MS, 13 * MS),
            (13 * MS, 30 * MS),
            (30 * MS, 31 * MS),
        ]);
        assert_eq!(log.within(0, 10 * MS).count(), 1);
        assert_eq!(log.touching(10 * MS, 20 * MS).count(), 3);
        assert_eq!(log.within(20 * MS, 40 * MS).count(), 1);
        assert_eq!(log.ended_within(10 * MS, 20 * MS), 2);
    }

    #[test]
    fn merged_histograms_count_everything_and_an_empty_one_has_no_percentiles() {
        let (mut a, mut b) = (Latencies::default(), Latencies::default());
        assert_eq!((a.count(), a.at_us(0.99)), (0, None));
        // Exactly one millisecond is not over one.
        [2 * MS, MS].into_iter().for_each(|ns| a.record(ns));
        [20 * MS, 1].into_iter().for_each(|ns| b.record(ns));
        a.add(&b);
        assert_eq!((a.count(), a.over_1ms), (4, 2));
    }
}
