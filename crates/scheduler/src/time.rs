//! Scheduler time: the clock in ticks of a millisecond since its first reading, deadlines rounded up.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::Waker;
use std::time::{Duration, SystemTime};

use crate::clock::{Clock, nanos};

/// One tick is a millisecond.
pub(crate) const TICK_NANOS: u64 = 1_000_000;

/// A clock as its scheduler reads it: from its first reading on.
#[derive(Debug)]
pub(crate) struct Readings {
    clock: Box<dyn Clock>,
    origin: Origin,
}

/// The first reading, and what else a clock's maker decides.
#[derive(Debug)]
enum Origin {
    /// In nanoseconds, of a clock of ours: it counts from its own start and never goes back.
    Ours(u64),
    /// Of any other: it may count from anywhere, and while it is behind its latest reading it stands still.
    Any { first: Duration, latest: AtomicU64 },
}

impl Readings {
    /// Of [`SystemClock`](crate::SystemClock) or [`ManualClock`](crate::ManualClock).
    pub(crate) fn of_ours(clock: impl Clock + 'static) -> Self {
        let origin = Origin::Ours(nanos(clock.now()));
        let clock = Box::new(clock);
        Self { clock, origin }
    }

    pub(crate) fn of_any(clock: Box<dyn Clock>) -> Self {
        let origin = Origin::Any {
            first: clock.now(),
            latest: AtomicU64::new(0),
        };
        Self { clock, origin }
    }

    pub(crate) fn now(&self) -> Now {
        let now = self.clock.now();
        match &self.origin {
            Origin::Ours(first) => Now(nanos(now).saturating_sub(*first)),
            Origin::Any { first, latest } => {
                let now = nanos(now.saturating_sub(*first));
                Now(latest.fetch_max(now, SeqCst).max(now))
            }
        }
    }

    pub(crate) fn wall(&self) -> SystemTime {
        self.clock.wall()
    }

    pub(crate) fn wake_when_moved(&self, sleeper: &Waker) {
        self.clock.wake_when_moved(sleeper);
    }
}

/// A reading of the clock, in nanoseconds since the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Now(pub(crate) u64);

impl Now {
    /// The tick that has begun.
    pub(crate) fn tick(self) -> u64 {
        self.0 / TICK_NANOS
    }

    /// The first tick that begins when `delay` has passed, or later.
    pub(crate) fn deadline(self, delay: Duration) -> u64 {
        nanos(delay).saturating_add(self.0).div_ceil(TICK_NANOS)
    }

    /// How long until a tick begins.
    pub(crate) fn until(self, tick: u64) -> Duration {
        Duration::from_nanos(tick.saturating_mul(TICK_NANOS).saturating_sub(self.0))
    }

    /// How long ago a tick began.
    pub(crate) fn since(self, tick: u64) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(tick.saturating_mul(TICK_NANOS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_never_before_the_delay_has_passed() {
        let now = Now(1_500_000);
        assert_eq!(now.tick(), 1);
        for (delay_us, tick) in [(0, 2), (1, 2), (500, 2), (501, 3), (1000, 3)] {
            assert_eq!(now.deadline(Duration::from_micros(delay_us)), tick);
        }
        assert_eq!(now.until(2), Duration::from_micros(500));
        assert_eq!(now.since(1), Duration::from_micros(500));
        assert_eq!(now.deadline(Duration::MAX), u64::MAX.div_ceil(TICK_NANOS));
    }
}
