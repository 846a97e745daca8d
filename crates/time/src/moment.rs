//! One reading of a clock, and its ticks of a millisecond.

use std::time::Duration;

/// One tick is a millisecond: deadlines are kept in ticks, rounded up.
pub const TICK_NANOS: u64 = 1_000_000;

/// A point in time, in nanoseconds since a clock's first reading.
///
/// `now` is rounded down to a tick and deadlines are rounded up, so nothing is early:
///
/// ```
/// use std::time::Duration;
/// use tidewheel_time::Moment;
///
/// let now = Moment(1_500_000);
/// assert_eq!(now.tick(), 1);
/// assert_eq!(now.deadline(Duration::from_millis(1)), 3);
/// assert_eq!(now.until(3), Duration::from_micros(1_500));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl Moment {
    /// The tick that has begun.
    #[inline]
    #[must_use]
    pub const fn tick(self) -> u64 {
        self.0 / TICK_NANOS
    }

    /// The first tick that begins when `delay` has passed, or later. Saturates after 584 years.
    #[inline]
    #[must_use]
    pub const fn deadline(self, delay: Duration) -> u64 {
        nanos(delay).saturating_add(self.0).div_ceil(TICK_NANOS)
    }

    /// The first tick at which a time to live that begins now is over; of none at all, the tick
    /// that has begun.
    #[inline]
    #[must_use]
    pub const fn end(self, ttl: Duration) -> u64 {
        if ttl.is_zero() {
            return self.tick();
        }
        self.deadline(ttl)
    }

    /// Returns the time until a tick begins; zero if it has begun.
    #[inline]
    #[must_use]
    pub const fn until(self, tick: u64) -> Duration {
        Duration::from_nanos(tick.saturating_mul(TICK_NANOS).saturating_sub(self.0))
    }

    /// Returns the time since a tick began; zero if it has not begun.
    #[inline]
    #[must_use]
    pub const fn since(self, tick: u64) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(tick.saturating_mul(TICK_NANOS)))
    }
}

/// A duration in nanoseconds. Saturates after 584 years.
#[inline]
#[must_use]
pub const fn nanos(duration: Duration) -> u64 {
    // Most durations fit; the product of the others saturates.
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(duration.subsec_nanos() as u64)
}

/// Ticks that cover a duration, rounded up.
#[inline]
#[must_use]
pub const fn ticks(duration: Duration) -> u64 {
    nanos(duration).div_ceil(TICK_NANOS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_never_before_the_delay_has_passed() {
        let now = Moment(1_500_000);
        assert_eq!(now.tick(), 1);
        for (delay_us, tick) in [(0, 2), (1, 2), (500, 2), (501, 3), (1000, 3)] {
            assert_eq!(now.deadline(Duration::from_micros(delay_us)), tick);
        }
        assert_eq!(now.until(2), Duration::from_micros(500));
        assert_eq!(now.since(1), Duration::from_micros(500));
        assert_eq!(
            (now.until(1), now.since(2)),
            (Duration::ZERO, Duration::ZERO)
        );
    }

    #[test]
    fn what_is_too_long_saturates() {
        assert_eq!(nanos(Duration::MAX), u64::MAX);
        assert_eq!(ticks(Duration::MAX), u64::MAX.div_ceil(TICK_NANOS));
        assert_eq!(
            Moment(7).deadline(Duration::MAX),
            u64::MAX.div_ceil(TICK_NANOS)
        );
        assert_eq!(Moment(0).until(u64::MAX), Duration::from_nanos(u64::MAX));
    }
}
