//! The distribution of the times of one command's calls, over all loops.

use std::collections::BTreeMap;

use tidewheel_time::Counts;

/// The times of one command's calls.
#[derive(Debug, Default)]
pub(crate) struct CallTimes {
    pub(crate) calls: u64,
    /// The calls that were timed, in nanoseconds, one reading for each loop.
    pub(crate) timed: Vec<Counts>,
}

impl CallTimes {
    /// Returns the numbers of calls by the upper bound of their time, in nanoseconds. The timed
    /// calls stand for those that were not timed: the numbers add up to all calls.
    pub(crate) fn by_time(&self) -> BTreeMap<u64, u64> {
        let mut seen = BTreeMap::new();
        for (upper_ns, n) in self.timed.iter().flat_map(Counts::buckets) {
            *seen.entry(upper_ns).or_default() += n;
        }
        let timed: u64 = seen.values().sum();
        let (mut passed, mut given) = (0, 0);
        for n in seen.values_mut() {
            passed += *n;
            let share = u128::from(self.calls.max(timed)) * u128::from(passed);
            let until = u64::try_from(share / u128::from(timed.max(1))).unwrap_or(u64::MAX);
            *n = until.saturating_sub(given);
            given = until;
        }
        seen
    }

    /// Returns the time in nanoseconds within which a share of the calls ended, from 0 to 1.
    pub(crate) fn within_ns(&self, share: f64) -> u64 {
        let by_time = self.by_time();
        let calls: u64 = by_time.values().sum();
        let rank = (calls as f64 * share).ceil() as u64;
        let mut seen = 0;
        let reached = by_time.iter().find(|(_, n)| {
            seen += **n;
            seen >= rank.max(1)
        });
        let upper_ns = reached.map_or(0, |(upper_ns, _)| *upper_ns);
        upper_ns.min(self.longest_ns())
    }

    /// Returns the number of calls that took no longer than each power of two, from 1,024 ns on:
    /// cumulative, and only where some are added.
    pub(crate) fn by_power(&self) -> Vec<(u32, u64)> {
        let mut powers: BTreeMap<u32, u64> = BTreeMap::new();
        for (upper_ns, n) in self.by_time() {
            let power = (u64::BITS - upper_ns.leading_zeros()).max(10);
            *powers.entry(power).or_default() += n;
        }
        let mut sum = 0;
        let cumulative = powers.into_iter().map(|(power, n)| {
            sum += n;
            (power, sum)
        });
        cumulative.collect()
    }

    fn longest_ns(&self) -> u64 {
        self.timed.iter().map(Counts::max).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use tidewheel_keyspace::Histogram;

    use super::*;

    fn times(calls: u64, loops: &[&[u64]]) -> CallTimes {
        let read = |values: &&[u64]| {
            let histogram = Histogram::default();
            values.iter().for_each(|ns| histogram.record(*ns, 1));
            histogram.read()
        };
        CallTimes {
            calls,
            timed: loops.iter().map(read).collect(),
        }
    }

    #[test]
    fn what_was_timed_stands_for_what_was_not() {
        let times = times(300, &[&[500], &[900, 70_000]]);
        assert_eq!(times.by_power(), [(10, 200), (17, 300)]);
        assert_eq!(times.by_time().values().sum::<u64>(), 300);
        assert_eq!(times.within_ns(1.0), 70_000);
        assert!((500..570).contains(&times.within_ns(0.0)));
        assert!((900..1_024).contains(&times.within_ns(0.5)));
    }

    #[test]
    fn without_a_timed_call_there_is_no_distribution() {
        let times = times(5, &[]);
        assert_eq!((times.by_power(), times.within_ns(0.5)), (Vec::new(), 0));
    }
}
