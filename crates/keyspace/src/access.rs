//! An entry's 24 bits of access history, as a clock (LRU) or as a frequency (LFU).

use crate::random::Random;
use crate::time::Now;

/// Seconds wrap after 194 days, as in the public protocol's servers.
const CLOCK_MASK: u32 = 0xff_ffff;
/// A new key's frequency: above zero, so that it is not evicted before it had a chance.
const INITIAL_FREQUENCY: u32 = 5;
const FREQUENCY_MAX: u32 = 255;

/// How access is recorded; taken once per command from the settings.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Recency {
    /// Seconds of the last access.
    Clock,
    /// Minutes of the last decay (16 bits) and a logarithmic counter (8 bits), after Redis' LFU.
    Frequency { log_factor: u32, decay_minutes: u32 },
}

impl Recency {
    /// The history of a key that is written for the first time.
    #[inline]
    pub(crate) fn of_new(self, now: &Now) -> u32 {
        match self {
            Self::Clock => seconds(now),
            Self::Frequency { .. } => minutes(now) << 8 | INITIAL_FREQUENCY,
        }
    }

    /// The history after one more access.
    #[inline]
    pub(crate) fn after_hit(self, old: u32, now: &Now, random: &mut Random) -> u32 {
        match self {
            Self::Clock => seconds(now),
            Self::Frequency { log_factor, .. } => {
                let frequency = self.frequency(old, now);
                // The higher the counter, the rarer the steps: 255 stands for about a million hits.
                let excess = u64::from(frequency.saturating_sub(INITIAL_FREQUENCY));
                let odds = excess * u64::from(log_factor) + 1;
                let step = frequency < FREQUENCY_MAX && random.next().is_multiple_of(odds);
                minutes(now) << 8 | (frequency + u32::from(step))
            }
        }
    }

    /// Hits, logarithmically, after decay.
    pub(crate) fn frequency(self, access: u32, now: &Now) -> u32 {
        let Self::Frequency { decay_minutes, .. } = self else {
            return 0;
        };
        let passed = minutes(now).wrapping_sub(access >> 8) & 0xffff;
        (access & 0xff).saturating_sub(passed.checked_div(decay_minutes).unwrap_or(0))
    }

    /// Seconds since the last access.
    pub(crate) fn idle_seconds(access: u32, now: &Now) -> u32 {
        seconds(now).wrapping_sub(access) & CLOCK_MASK
    }
}

fn seconds(now: &Now) -> u32 {
    (now.clock / 1000) as u32 & CLOCK_MASK
}

fn minutes(now: &Now) -> u32 {
    (now.clock / 60_000) as u32 & 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Now {
        let tick = (1 << 40) + seconds * 1000;
        Now {
            tick,
            micros: 0,
            wall_ms: 0,
            clock: tick,
            clock_micros: 0,
        }
    }

    #[test]
    fn idle_time_counts_seconds_across_the_wrap() {
        let mut random = Random::new(1);
        let start = at(0);
        let access = Recency::Clock.after_hit(0, &start, &mut random);
        assert_eq!(access, Recency::Clock.of_new(&start));
        assert_eq!(Recency::idle_seconds(access, &start), 0);
        assert_eq!(Recency::idle_seconds(access, &at(100)), 100);
        assert_eq!(
            Recency::idle_seconds(access, &at((1 << 24) - 1)),
            (1 << 24) - 1
        );
        assert_eq!(Recency::idle_seconds(access, &at((1 << 24) + 3)), 3);
    }

    #[test]
    fn frequency_grows_logarithmically_and_decays() {
        let lfu = Recency::Frequency {
            log_factor: 10,
            decay_minutes: 1,
        };
        let mut random = Random::new(1);
        let mut access = lfu.of_new(&at(0));
        assert_eq!(lfu.frequency(access, &at(0)), 5);
        let mut reached = Vec::new();
        for hits in 1..=1_000_000 {
            access = lfu.after_hit(access, &at(0), &mut random);
            if [100, 1000, 100_000, 1_000_000].contains(&hits) {
                reached.push(lfu.frequency(access, &at(0)));
            }
        }
        assert!(
            reached.is_sorted() && reached[0] >= 8 && reached[0] < 20,
            "{reached:?}"
        );
        assert!(reached[3] > 200, "{reached:?}");
        let full = lfu.frequency(access, &at(0));
        assert_eq!(lfu.frequency(access, &at(600)), full - 10);
        assert_eq!(lfu.frequency(access, &at(60 * 300)), 0);
        let never = Recency::Frequency {
            log_factor: 10,
            decay_minutes: 0,
        };
        assert_eq!(never.frequency(access, &at(60 * 300)), full);
    }
}
