//! Clocks. This is the only file of all crates that reads one.
#![allow(
    clippy::disallowed_methods,
    reason = "this is the file that the lint sends clock readers to"
)]

use std::fmt::Debug;
use std::task::Waker;
use std::time::{Duration, SystemTime};

/// Where time comes from.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tidewheel_time::Clock;
///
/// /// A clock that a simulation moves.
/// #[derive(Debug)]
/// struct Simulated(std::sync::atomic::AtomicU64);
///
/// impl Clock for Simulated {
///     fn now(&self) -> Duration {
///         Duration::from_millis(self.0.load(std::sync::atomic::Ordering::Relaxed))
///     }
///
///     fn wall(&self) -> SystemTime {
///         SystemTime::UNIX_EPOCH + self.now()
///     }
/// }
/// ```
///
/// It is read under locks of the cache or the scheduler that it is the clock of, so it must not
/// call these.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Time since the clock's origin, whatever that is: users count from their first reading on,
    /// for up to 34.8 years.
    ///
    /// It should never be set. If it is, a step back counts as no time, after which time goes on
    /// (what lies up to a second before the latest reading counts as that); a step ahead that leads
    /// beyond those 34.8 years counts as a year at most.
    fn now(&self) -> Duration;

    /// Two times that surely enclose [`now`](Self::now), for less than a reading of it.
    ///
    /// A lookup whose deadline lies outside needs no exact reading. The default is one: always
    /// right.
    fn bounds(&self) -> (Duration, Duration) {
        let now = self.now();
        (now, now)
    }

    /// Wall time, which deadlines given as points in time are compared with. May jump: no deadline
    /// that was set before moves.
    fn wall(&self) -> SystemTime;

    /// A thread is about to sleep by this clock: `sleeper` is to be woken once, at the next move by
    /// hand. Called before each sleep. A clock that runs by itself ignores it, which is the
    /// default.
    ///
    /// Threads sleep in real time until a clock is expected to show their deadline. So a clock runs
    /// as fast as real time, or it wakes those who sleep whenever it is moved.
    fn wake_when_moved(&self, sleeper: &Waker) {
        let _ = sleeper;
    }
}

#[cfg(feature = "system")]
pub use system::{SystemClock, boot_nanos, monotonic_nanos, until_instant, wall_nanos};

#[cfg(feature = "system")]
mod system {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use super::Clock;

    /// The lag of the coarse clock that is allowed for, in nanoseconds.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const COARSE_LAG: u64 = 50_000_000;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const COARSE_LAG: u64 = 0;

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[inline]
    fn read(id: rustix::time::ClockId) -> u64 {
        let time = rustix::time::clock_gettime(id);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    /// Nanoseconds of the system's monotonic clock. On Linux they are the numbers that timerfd
    /// takes; elsewhere they count from the first reading in this process, less a second.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[inline]
    #[must_use]
    pub fn monotonic_nanos() -> u64 {
        read(rustix::time::ClockId::Monotonic)
    }

    /// Nanoseconds of the system's monotonic clock. On Linux they are the numbers that timerfd
    /// takes; elsewhere they count from the first reading in this process, less a second.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    #[inline]
    #[must_use]
    pub fn monotonic_nanos() -> u64 {
        static ORIGIN: std::sync::LazyLock<std::time::Instant> =
            std::sync::LazyLock::new(std::time::Instant::now);
        super::super::nanos(ORIGIN.elapsed()).saturating_add(1_000_000_000)
    }

    /// Nanoseconds since the machine was started, those included in which it was suspended. `None`
    /// where the system does not say.
    #[must_use]
    pub fn boot_nanos() -> Option<u64> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return Some(read(rustix::time::ClockId::Boottime));
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        None
    }

    /// Nanoseconds of wall time since 1970; negative before.
    #[must_use]
    pub fn wall_nanos() -> i128 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_nanos() as i128,
            Err(before) => -(before.duration().as_nanos() as i128),
        }
    }

    /// Returns the time until an instant; zero if it has passed.
    #[must_use]
    pub fn until_instant(at: std::time::Instant) -> Duration {
        at.saturating_duration_since(std::time::Instant::now())
    }

    /// A reading of the monotonic clock that lags by at most [`COARSE_LAG`]: on Linux of the coarse
    /// one, which the kernel moves on every timer tick, at least a hundred times a second.
    #[inline(always)]
    fn coarse_nanos() -> u64 {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            read(rustix::time::ClockId::MonotonicCoarse)
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            monotonic_nanos()
        }
    }

    /// The operating system's monotonic clock.
    ///
    /// On Linux `bounds` reads the coarse clock (about 5 ns instead of 25), which the kernel moves
    /// on every timer tick, at least a hundred times a second; it is trusted to lag by at most 50
    /// ms.
    #[derive(Debug, Clone)]
    pub struct SystemClock {
        /// In nanoseconds of the monotonic clock.
        origin: u64,
        /// The same, less what the coarse clock may lag; it wraps.
        bound_origin: u64,
    }

    impl Default for SystemClock {
        fn default() -> Self {
            Self::new()
        }
    }

    impl SystemClock {
        /// A clock whose origin is now.
        #[must_use]
        pub fn new() -> Self {
            // The coarse clock may still show a time before now.
            Self::since(monotonic_nanos().saturating_sub(COARSE_LAG))
        }

        const fn since(origin: u64) -> Self {
            Self {
                origin,
                bound_origin: origin.wrapping_sub(COARSE_LAG),
            }
        }

        /// Nanoseconds since the origin.
        #[inline]
        pub(crate) fn nanos(&self) -> u64 {
            monotonic_nanos().saturating_sub(self.origin)
        }

        /// A time in nanoseconds that is not before now. Should the coarse clock lag by far more
        /// than it is trusted to, it is one of the far future.
        #[inline(always)]
        pub(crate) fn nanos_bound(&self) -> u64 {
            coarse_nanos().wrapping_sub(self.bound_origin)
        }

        /// Two times in nanoseconds that enclose now.
        #[inline]
        pub(crate) fn nanos_bounds(&self) -> (u64, u64) {
            let low = coarse_nanos();
            let high = (low + COARSE_LAG).saturating_sub(self.origin);
            (low.saturating_sub(self.origin), high)
        }
    }

    impl Clock for SystemClock {
        #[inline]
        fn now(&self) -> Duration {
            Duration::from_nanos(self.nanos())
        }

        #[inline]
        fn bounds(&self) -> (Duration, Duration) {
            let (low, high) = self.nanos_bounds();
            (Duration::from_nanos(low), Duration::from_nanos(high))
        }

        fn wall(&self) -> SystemTime {
            SystemTime::now()
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_bound_is_not_before_now_nor_long_after_it() {
            let clock = SystemClock::new();
            let before = clock.nanos();
            let bound = clock.nanos_bound();
            assert!(bound >= before);
            assert!(bound <= clock.nanos() + 50_000_000);
        }

        /// Whoever sees the far future reads the exact clock. A bound of zero would let dead
        /// entries live.
        #[test]
        fn a_coarse_clock_before_the_origin_is_bounded_by_the_far_future() {
            let origin = monotonic_nanos() + 1_000_000_000_000;
            assert!(SystemClock::since(origin).nanos_bound() > 1 << 63);
        }
    }
}

/// tokio's clock, which its tests may pause.
#[cfg(feature = "tokio")]
#[derive(Debug, Clone, Copy)]
pub struct TokioClock(tokio::time::Instant);

#[cfg(feature = "tokio")]
impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "tokio")]
impl TokioClock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn new() -> Self {
        Self(tokio::time::Instant::now())
    }

    /// The time since the origin.
    #[must_use]
    pub fn now(self) -> crate::Moment {
        crate::Moment(crate::nanos(self.0.elapsed()))
    }

    /// Returns the time until an instant; zero if it has passed.
    #[must_use]
    pub fn until(self, at: tokio::time::Instant) -> Duration {
        at.saturating_duration_since(tokio::time::Instant::now())
    }

    /// The instant at which a moment comes; a year from now for one that is too far to say.
    #[must_use]
    pub fn instant(self, moment: crate::Moment) -> tokio::time::Instant {
        const FAR: Duration = Duration::from_secs(365 * 86_400);
        let at = self.0.checked_add(Duration::from_nanos(moment.0));
        at.unwrap_or_else(|| tokio::time::Instant::now() + FAR)
    }
}
