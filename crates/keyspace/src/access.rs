//! An entry's 24 bits of access history, as a clock (LRU) or as a frequency (LFU).
//!
//! `clock` is the clock's tick in milliseconds, not engine time: idle time passes while expiry is
//! frozen.

use crate::random::Random;

/// Seconds wrap after 194 days, as in the public protocol's servers.
const CLOCK_MASK: u32 = 0xff_ffff;
/// A new key's frequency: above zero, so that it is not evicted before it had a chance.
const INITIAL_FREQUENCY: u32 = 5;
const FREQUENCY_MAX: u32 = 255;

/// The way in which access is recorded; taken once per command from the rules.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Recency {
    /// Seconds of the last access.
    Clock,
    /// Minutes of the last decay (16 bits) and a logarithmic counter (8 bits), after Redis' LFU.
    Frequency { log_factor: u32, decay_minutes: u32 },
}

impl Recency {
    /// The history of a key that is written for the first time.
    #[inline(always)]
    pub(crate) fn of_new(self, clock: u64) -> u32 {
        match self {
            Self::Clock => seconds(clock),
            Self::Frequency { .. } => minutes(clock) << 8 | INITIAL_FREQUENCY,
        }
    }

    /// The history of a key that was not used for some seconds. As a clock.
    pub(crate) fn of_idle(idle_seconds: u64, clock: u64) -> u32 {
        seconds(clock).wrapping_sub(idle_seconds.min(CLOCK_MASK.into()) as u32) & CLOCK_MASK
    }

    /// The history of a key that was used so often. As a frequency.
    pub(crate) fn of_frequency(frequency: u8, clock: u64) -> u32 {
        minutes(clock) << 8 | u32::from(frequency)
    }

    /// The history after one more access.
    #[inline]
    pub(crate) fn after_hit(self, old: u32, clock: u64, random: &mut Random) -> u32 {
        match self {
            Self::Clock => seconds(clock),
            Self::Frequency { log_factor, .. } => {
                let frequency = self.frequency(old, clock);
                // The higher the counter, the rarer the steps: 255 stands for about a million hits.
                let excess = u64::from(frequency.saturating_sub(INITIAL_FREQUENCY));
                let odds = excess * u64::from(log_factor) + 1;
                let step = frequency < FREQUENCY_MAX && random.next().is_multiple_of(odds);
                minutes(clock) << 8 | (frequency + u32::from(step))
            }
        }
    }

    /// Hits, logarithmically, after decay.
    pub(crate) fn frequency(self, access: u32, clock: u64) -> u32 {
        let Self::Frequency { decay_minutes, .. } = self else {
            return 0;
        };
        let passed = minutes(clock).wrapping_sub(access >> 8) & 0xffff;
        (access & 0xff).saturating_sub(passed.checked_div(decay_minutes).unwrap_or(0))
    }

    /// Seconds since the last access.
    pub(crate) fn idle_seconds(access: u32, clock: u64) -> u32 {
        seconds(clock).wrapping_sub(access) & CLOCK_MASK
    }
}

#[inline(always)]
fn seconds(clock: u64) -> u32 {
    (clock / 1000) as u32 & CLOCK_MASK
}

fn minutes(clock: u64) -> u32 {
    (clock / 60_000) as u32 & 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> u64 {
        (1 << 40) + seconds * 1000
    }

    #[test]
    fn idle_time_counts_seconds_across_the_wrap() {
        let mut random = Random::new(1);
        let start = at(0);
        let access = Recency::Clock.after_hit(0, start, &mut random);
        assert_eq!(access, Recency::Clock.of_new(start));
        assert_eq!(Recency::idle_seconds(access, start), 0);
        assert_eq!(Recency::idle_seconds(access, at(100)), 100);
        assert_eq!(
            Recency::idle_seconds(access, at((1 << 24) - 1)),
            (1 << 24) - 1
        );
        assert_eq!(Recency::idle_seconds(access, at((1 << 24) + 3)), 3);
    }

    #[test]
    fn frequency_grows_logarithmically_and_decays() {
        let lfu = Recency::Frequency {
            log_factor: 10,
            decay_minutes: 1,
        };
        let mut random = Random::new(1);
        let mut access = lfu.of_new(at(0));
        assert_eq!(lfu.frequency(access, at(0)), 5);
        let mut reached = Vec::new();
        for hits in 1..=1_000_000 {
            access = lfu.after_hit(access, at(0), &mut random);
            if [100, 1000, 100_000, 1_000_000].contains(&hits) {
                reached.push(lfu.frequency(access, at(0)));
            }
        }
        assert!(
            reached.is_sorted() && reached[0] >= 8 && reached[0] < 20,
            "{reached:?}"
        );
        assert!(reached[3] > 200, "{reached:?}");
        let full = lfu.frequency(access, at(0));
        assert_eq!(lfu.frequency(access, at(600)), full - 10);
        assert_eq!(lfu.frequency(access, at(60 * 300)), 0);
        let never = Recency::Frequency {
            log_factor: 10,
            decay_minutes: 0,
        };
        assert_eq!(never.frequency(access, at(60 * 300)), full);
    }
}
