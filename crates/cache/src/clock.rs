//! Clocks: the only file that reads one. A cache takes any [`Clock`]; tests take a [`ManualClock`].

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Where a cache has its time from.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Time since the clock's origin, whatever that is: a cache counts from its first reading on, for up to
    /// 34.8 years.
    ///
    /// It should never be set. If it is, a step back counts as no time, after which time goes on (what lies up
    /// to a second before the latest reading counts as that); a step ahead that leads beyond those 34.8
    /// years counts as a year at most.
    fn now(&self) -> Duration;

    /// Two times that surely enclose [`now`](Self::now), for less than a reading of it.
    ///
    /// A lookup whose deadline lies outside needs no exact reading. The default is one: always right.
    fn bounds(&self) -> (Duration, Duration) {
        let now = self.now();
        (now, now)
    }

    /// Wall time, which deadlines given as points in time are compared with. May jump: no deadline that
    /// was set before moves.
    fn wall(&self) -> SystemTime;
}

/// The operating system's monotonic clock.
///
/// On Linux `bounds` reads the coarse clock (about 5 ns instead of 25), which the kernel moves on every
/// timer tick, at least a hundred times a second; it is trusted to lag by at most 50 ms.
#[cfg(feature = "system")]
#[derive(Debug, Clone)]
pub struct SystemClock {
    /// In nanoseconds of the monotonic clock.
    #[cfg(target_os = "linux")]
    origin: u64,
    #[cfg(not(target_os = "linux"))]
    origin: std::time::Instant,
}

#[cfg(feature = "system")]
impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

/// How much the coarse clock is trusted to lag, in nanoseconds.
#[cfg(all(feature = "system", target_os = "linux"))]
const COARSE_LAG: u64 = 50_000_000;

#[cfg(all(feature = "system", target_os = "linux"))]
#[inline]
fn read(id: rustix::time::ClockId) -> u64 {
    let time = rustix::time::clock_gettime(id);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(all(feature = "system", target_os = "linux"))]
impl SystemClock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            // The coarse clock may still show a time before now.
            origin: read(rustix::time::ClockId::Monotonic).saturating_sub(COARSE_LAG),
        }
    }

    /// Nanoseconds since the origin.
    #[inline]
    pub(crate) fn nanos(&self) -> u64 {
        read(rustix::time::ClockId::Monotonic).saturating_sub(self.origin)
    }

    /// Two times in nanoseconds that enclose now.
    #[inline]
    pub(crate) fn nanos_bounds(&self) -> (u64, u64) {
        let low = read(rustix::time::ClockId::MonotonicCoarse).saturating_sub(self.origin);
        (low, low + COARSE_LAG)
    }
}

#[cfg(all(feature = "system", not(target_os = "linux")))]
impl SystemClock {
    /// A clock whose origin is now.
    #[must_use]
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the file that reads clocks"
    )]
    pub fn new() -> Self {
        Self {
            origin: std::time::Instant::now(),
        }
    }

    /// Nanoseconds since the origin.
    #[inline]
    pub(crate) fn nanos(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Two times in nanoseconds that enclose now.
    #[inline]
    pub(crate) fn nanos_bounds(&self) -> (u64, u64) {
        let now = self.nanos();
        (now, now)
    }
}

#[cfg(feature = "system")]
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

    #[allow(
        clippy::disallowed_methods,
        reason = "this is the file that reads clocks"
    )]
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A clock that is moved by hand. Clones are the same clock.
///
/// ```
/// use std::time::Duration;
/// use tidewheel::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// clock.advance(Duration::from_millis(1500));
/// assert_eq!(clock.now(), Duration::from_millis(1500));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ManualClock(StdArc<Hands>);

#[derive(Debug, Default)]
struct Hands {
    nanos: AtomicU64,
    wall_nanos: AtomicU64,
}

/// The last reading of a manual clock, 292 years ahead: it stays there.
const LAST_NANOS: u64 = i64::MAX as u64;

impl ManualClock {
    /// A clock that shows zero; its wall time is the Unix epoch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves both the monotonic and the wall time on.
    pub fn advance(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        for hand in [&self.0.nanos, &self.0.wall_nanos] {
            let moved = |at: u64| Some(at.saturating_add(nanos).min(LAST_NANOS));
            let _ = hand.fetch_update(Relaxed, Relaxed, moved);
        }
    }

    /// Steps the wall time alone, as an operator or NTP would.
    pub fn set_wall(&self, since_epoch: Duration) {
        let nanos = u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX);
        self.0.wall_nanos.store(nanos, Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.nanos.load(Relaxed))
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.0.wall_nanos.load(Relaxed))
    }
}
