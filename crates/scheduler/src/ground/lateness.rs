//! A histogram of the lateness of handlers, in microseconds.

use std::fmt;
use std::time::Duration;

use tidewheel_time::{Counts, Histogram};

/// Counts while they are written.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Histogram);

impl Recorder {
    pub(crate) fn record(&self, late: Duration) {
        let us = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        self.0.record(us, 1);
    }

    pub(crate) fn read(&self) -> Lateness {
        Lateness(self.0.read())
    }
}

/// The lateness of handlers, from the deadline that was asked for (rounded up to a millisecond).
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Lateness(Counts);

/// Shows the number of runs, and their quantiles.
impl fmt::Debug for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lateness")
            .field("count", &self.count())
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("p999", &self.quantile(0.999))
            .field("max", &self.max())
            .finish()
    }
}

impl Lateness {
    /// Runs that were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.count()
    }

    /// The latest, exactly.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.0.max())
    }

    /// Upper bound of the lateness of the given part of all runs, at most 12.5 % above it; 0.99 for
    /// p99. Zero when nothing was counted.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Duration {
        let rank = (self.count() as f64 * part).ceil() as u64;
        Duration::from_micros(self.0.at_rank(rank))
    }

    /// The runs that were counted after an earlier reading.
    #[cfg(feature = "metrics")]
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self(self.0.since(&earlier.0))
    }

    /// Upper bounds and counts of the windows that are not empty, shortest first.
    pub fn windows(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let buckets = self.0.buckets();
        buckets.map(|(us, n)| (Duration::from_micros(us), n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_what_was_recorded() {
        let recorder = Recorder::default();
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
        let printed = format!("{lateness:?}");
        assert!(
            printed.starts_with("Lateness { count: 1000, p50: 511µs,"),
            "{printed}"
        );
        assert!(printed.ends_with("max: 1ms }"), "{printed}");
    }
}
