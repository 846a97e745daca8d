//! A cache's time: its clock, minus the time for which it was frozen.

use std::task::Waker;
use std::time::{Duration, SystemTime};

use tidewheel_time::{Clock, Moment, Readings, TICK_NANOS, Timeline, nanos};

/// A time, in nanoseconds, that engine time had not passed when it was read.
#[derive(Clone, Copy)]
pub(crate) struct Bound(u64);

impl Bound {
    /// A bound for a shard in which no entry has a deadline.
    pub(crate) const NONE: Self = Self(((1 << 32) - 2) * TICK_NANOS);

    /// The last tick that may have begun.
    #[inline(always)]
    pub(crate) const fn tick(self) -> u64 {
        self.0 / TICK_NANOS
    }

    /// A time that is later by so many nanoseconds, at most 2^62.
    #[inline(always)]
    pub(crate) const fn plus(self, nanos: u64) -> Self {
        Self(self.0.wrapping_add(nanos))
    }

    /// Returns whether a deadline was ahead. (A tick has 40 bits, and its nanoseconds 60.)
    #[inline(always)]
    pub(crate) const fn is_before(self, deadline: u64) -> bool {
        deadline * TICK_NANOS > self.0
    }
}

/// Engine time: a clock's readings on a timeline that can be frozen.
pub(crate) struct Time {
    clock: Readings,
    timeline: Timeline,
}

impl Time {
    #[cfg(feature = "system")]
    pub(crate) fn system() -> Self {
        Self::of(Readings::system())
    }

    pub(crate) fn given(clock: Box<dyn Clock>) -> Self {
        Self::of(Readings::given(clock))
    }

    fn of(clock: Readings) -> Self {
        let timeline = Timeline::new();
        Self { clock, timeline }
    }

    /// Returns whether a reading runs user code, which may be slow.
    #[inline(always)]
    pub(crate) fn is_given(&self) -> bool {
        self.clock.is_given()
    }

    /// Engine time, exact.
    #[inline]
    pub(crate) fn now(&self) -> Moment {
        match self.timeline.read(|| self.clock.now()) {
            Ok((clock, behind)) => Moment(clock.0.saturating_sub(behind)),
            Err(frozen) => Moment(frozen),
        }
    }

    /// The clock's own reading: it goes on while engine time is frozen.
    #[cfg(feature = "metrics")]
    pub(crate) fn unfrozen(&self) -> Moment {
        self.clock.now()
    }

    /// As [`now`](Self::now), if the clock is a user's.
    #[inline]
    pub(crate) fn given_now(&self) -> Option<Moment> {
        self.is_given().then(|| self.now())
    }

    /// A time that engine time has not passed, for less than an exact reading.
    #[inline(always)]
    pub(crate) fn bound(&self) -> Bound {
        // If it wraps, it is in the far future: then the exact clock is read.
        Bound(self.timeline.bound(|| self.clock.bound().0))
    }

    /// Returns the clock's reading when engine time began.
    pub(crate) fn origin(&self) -> Duration {
        self.clock.first()
    }

    /// The moment at which `Cache::now` showed this.
    pub(crate) fn moment(&self, shown: Duration) -> Moment {
        Moment(nanos(shown.saturating_sub(self.origin())))
    }

    pub(crate) fn wall(&self) -> SystemTime {
        self.clock.wall()
    }

    /// Wakes `sleeper` at the next move of a clock that is moved by hand.
    pub(crate) fn wake_when_moved(&self, sleeper: &Waker) {
        self.clock.wake_when_moved(sleeper);
    }

    /// Stops engine time; does nothing when it stands still.
    pub(crate) fn freeze(&self) {
        self.timeline.freeze(|| self.clock.now().0);
    }

    /// Lets engine time go on where it stopped.
    pub(crate) fn resume(&self) {
        self.timeline.resume(|| self.clock.now().0);
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.timeline.is_frozen()
    }
}
