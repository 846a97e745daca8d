//! Engine time: the clock in ticks of a millisecond, less the time it was frozen.

use std::time::{Duration, SystemTime};

use crate::clock::Clock;
use crate::given::Given;
use crate::sync::{
    AtomicU64, Mutex,
    Ordering::{Acquire, Relaxed, Release},
    lock,
};

/// One tick is a millisecond: deadlines are kept in them, rounded up.
const TICK_NANOS: u64 = 1_000_000;

/// Not frozen.
const RUNNING: u64 = u64::MAX;

/// Nanoseconds; engine time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Nanos(pub(crate) u64);

impl Nanos {
    /// The tick that has begun.
    #[inline]
    pub(crate) fn tick(self) -> u64 {
        self.0 / TICK_NANOS
    }

    /// The first tick at which a time to live that begins now has passed; of none at all, the tick that
    /// has begun.
    #[inline]
    pub(crate) fn deadline(self, ttl: Duration) -> u64 {
        if ttl.is_zero() {
            return self.tick();
        }
        nanos(ttl).saturating_add(self.0).div_ceil(TICK_NANOS)
    }

    /// How long until a tick begins.
    pub(crate) fn until(self, tick: u64) -> Duration {
        Duration::from_nanos(tick.saturating_mul(TICK_NANOS).saturating_sub(self.0))
    }
}

#[inline]
fn nanos(duration: Duration) -> u64 {
    // Most durations fit; the product of the others saturates.
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::from(duration.subsec_nanos()))
}

/// Ticks that cover a duration, rounded up.
pub(crate) fn ticks(duration: Duration) -> u64 {
    nanos(duration).div_ceil(TICK_NANOS)
}

/// A cache's time.
#[derive(Debug)]
pub(crate) struct Time {
    clock: Source,
    /// How much engine time is behind the clock.
    behind: AtomicU64,
    /// Engine time while it stands still; [`RUNNING`] while it does not.
    frozen: AtomicU64,
    /// Held by whoever freezes or resumes.
    changing: Mutex<()>,
}

/// The usual clock without an indirect call.
#[derive(Debug)]
enum Source {
    #[cfg(feature = "system")]
    System(crate::clock::SystemClock),
    Given(Given),
}

impl Time {
    #[cfg(feature = "system")]
    pub(crate) fn system() -> Self {
        Self::of(Source::System(crate::clock::SystemClock::new()))
    }

    pub(crate) fn given(clock: Box<dyn Clock>) -> Self {
        Self::of(Source::Given(Given::new(clock)))
    }

    fn of(clock: Source) -> Self {
        Self {
            clock,
            behind: AtomicU64::new(0),
            frozen: AtomicU64::new(RUNNING),
            changing: Mutex::new(()),
        }
    }

    /// Reads the clock by `read` at a moment with a known offset: what was read and the offset, or engine
    /// time if it stands still. A thread that sleeps through a freeze in between reads anew.
    #[inline]
    fn reading<T>(&self, read: impl Fn() -> T) -> Result<(T, u64), Nanos> {
        loop {
            let behind = self.behind.load(Acquire);
            let clock = read();
            // `behind` changes only while this says that time stands still, and it only grows.
            match self.frozen.load(Acquire) {
                RUNNING if self.behind.load(Relaxed) == behind => return Ok((clock, behind)),
                RUNNING => {}
                frozen => return Err(Nanos(frozen)),
            }
        }
    }

    #[inline]
    fn clock(&self) -> u64 {
        match &self.clock {
            #[cfg(feature = "system")]
            Source::System(clock) => clock.nanos(),
            Source::Given(clock) => clock.nanos(),
        }
    }

    /// Two readings of the clock that enclose its time.
    #[inline]
    fn clock_bounds(&self) -> (u64, u64) {
        match &self.clock {
            #[cfg(feature = "system")]
            Source::System(clock) => clock.nanos_bounds(),
            Source::Given(clock) => clock.nanos_bounds(),
        }
    }

    /// Engine time, exact.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        match self.reading(|| self.clock()) {
            Ok((clock, behind)) => Nanos(clock.saturating_sub(behind)),
            Err(frozen) => frozen,
        }
    }

    /// Whether a tick has begun; an exact reading only near it.
    #[inline]
    pub(crate) fn reached(&self, tick: u64) -> bool {
        let begins = tick.saturating_mul(TICK_NANOS);
        match self.reading(|| self.clock_bounds()) {
            Ok(((low, high), behind)) => {
                let begins_at = begins.saturating_add(behind);
                high >= begins_at && (low >= begins_at || self.now().0 >= begins)
            }
            Err(frozen) => frozen.0 >= begins,
        }
    }

    /// What the clock showed when engine time began.
    pub(crate) fn origin(&self) -> Duration {
        match &self.clock {
            #[cfg(feature = "system")]
            Source::System(_) => Duration::ZERO,
            Source::Given(clock) => clock.first(),
        }
    }

    pub(crate) fn wall(&self) -> SystemTime {
        match &self.clock {
            #[cfg(feature = "system")]
            Source::System(clock) => clock.wall(),
            Source::Given(clock) => clock.clock().wall(),
        }
    }

    /// Stops engine time; does nothing when it stands still.
    pub(crate) fn freeze(&self) {
        let _changing = lock(&self.changing);
        if !self.is_frozen() {
            self.frozen.store(self.now().0, Release);
        }
    }

    /// Lets engine time go on where it stopped.
    pub(crate) fn resume(&self) {
        let _changing = lock(&self.changing);
        if self.is_frozen() {
            let frozen = self.frozen.load(Relaxed);
            self.behind
                .store(self.clock().saturating_sub(frozen), Relaxed);
            self.frozen.store(RUNNING, Release);
        }
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen.load(Relaxed) != RUNNING
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::clock::ManualClock;

    /// A reading from before a freeze, less the offset from after it, was too early by the freeze.
    #[test]
    fn a_freeze_in_the_middle_of_a_reading_turns_no_time_back() {
        let hands = ManualClock::new();
        let time = Time::given(Box::new(hands.clone()));
        hands.advance(Duration::from_secs(100));
        let readings = Cell::new(0);
        let (clock, behind) = time
            .reading(|| {
                let shown = hands.now();
                readings.set(readings.get() + 1);
                if readings.get() == 1 {
                    time.freeze();
                    hands.advance(Duration::from_secs(60));
                    time.resume();
                }
                shown
            })
            .expect("time goes on");
        assert_eq!(readings.get(), 2, "the first reading is too old");
        assert_eq!(nanos(clock) - behind, 100_000_000_000);
    }
}
