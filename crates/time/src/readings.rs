//! A clock as its users read it: from its first reading on, and never backwards.
//!
//! Deadlines have 40 bits of milliseconds. So time here begins at zero, whatever the clock shows:
//! it is the clock's reading less an `offset`, which is the first reading.
//!
//! A clock may be set while it is read:
//!
//! - It is set back: no time has passed, and time goes on from where it was.
//! - It is set ahead, beyond all deadlines: that counts as a year. So later deadlines still fit
//!   into 40 bits.
//!
//! Both change the offset, under a lock. If the offset changes during a reading, the reading is
//! made again.
//!
//! Nanoseconds wrap after 584 years, in readings and offsets alike: only their differences mean
//! anything.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Release},
};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;
use std::time::{Duration, SystemTime};

use crate::clock::Clock;
#[cfg(feature = "system")]
use crate::clock::SystemClock;
use crate::moment::Moment;

/// Readings of one clock: nanoseconds since the first one, which never go back.
///
/// ```
/// use std::time::Duration;
/// use tidewheel_time::{ManualClock, Moment, Readings};
///
/// let clock = ManualClock::new();
/// clock.advance(Duration::from_secs(1_700_000_000));
/// let readings = Readings::given(Box::new(clock.clone()));
/// clock.advance(Duration::from_nanos(7));
/// assert_eq!(readings.now(), Moment(7));
/// ```
#[derive(Debug)]
pub struct Readings(Source);

/// The usual clock is read without an indirect call.
#[derive(Debug)]
enum Source {
    #[cfg(feature = "system")]
    System(SystemClock),
    Given(Given),
}

impl Readings {
    /// Of the operating system's clock.
    #[cfg(feature = "system")]
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System(SystemClock::new()))
    }

    /// Of a user's clock, from now on.
    #[must_use]
    pub fn given(clock: Box<dyn Clock>) -> Self {
        Self(Source::Given(Given::new(clock)))
    }

    /// Returns whether it is a user's clock.
    #[inline]
    #[must_use]
    pub fn is_given(&self) -> bool {
        matches!(self.0, Source::Given(_))
    }

    /// The exact time.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Moment {
        match &self.0 {
            #[cfg(feature = "system")]
            Source::System(clock) => Moment(clock.nanos()),
            Source::Given(clock) => Moment(clock.nanos()),
        }
    }

    /// A time that is not before now, for less than an exact reading: nearly always at most 50 ms
    /// after it.
    // Compiled into a cache's look-up, in which a call would count.
    #[inline(always)]
    #[must_use]
    pub fn bound(&self) -> Moment {
        Moment(match &self.0 {
            #[cfg(feature = "system")]
            Source::System(clock) => clock.nanos_bound(),
            Source::Given(clock) => clock.nanos_bound(),
        })
    }

    /// Two times that enclose now, for less than an exact reading.
    #[inline]
    #[must_use]
    pub fn bounds(&self) -> (Moment, Moment) {
        let (low, high) = match &self.0 {
            #[cfg(feature = "system")]
            Source::System(clock) => clock.nanos_bounds(),
            Source::Given(clock) => clock.nanos_bounds(),
        };
        (Moment(low), Moment(high))
    }

    /// Returns the clock's first reading.
    #[must_use]
    pub fn first(&self) -> Duration {
        match &self.0 {
            #[cfg(feature = "system")]
            Source::System(_) => Duration::ZERO,
            Source::Given(clock) => clock.first,
        }
    }

    /// Wall time. It may jump.
    #[must_use]
    pub fn wall(&self) -> SystemTime {
        match &self.0 {
            #[cfg(feature = "system")]
            Source::System(clock) => clock.wall(),
            Source::Given(given) => given.clock.wall(),
        }
    }

    /// See [`Clock::wake_when_moved`].
    pub fn wake_when_moved(&self, sleeper: &Waker) {
        match &self.0 {
            #[cfg(feature = "system")]
            Source::System(_) => {}
            Source::Given(given) => given.clock.wake_when_moved(sleeper),
        }
    }
}

/// A leap beyond [`REACH`] counts as this, in nanoseconds: a year.
const LEAP_MAX: i64 = 365 * 86_400 * 1_000_000_000;

/// The reach of deadlines, in nanoseconds.
const REACH: u64 = (1 << 40) * 1_000_000;

/// A reading may lie before the latest one, because another thread read the clock later but was
/// faster. If it lies further back than this many nanoseconds, the clock was set back.
const OVERTAKEN_MAX: i64 = 1_000_000_000;

/// The number of times that a reading is repeated when the clock is set again and again. Then the
/// latest time is returned.
const TRIES: u32 = 8;

/// A user's clock.
#[derive(Debug)]
struct Given {
    clock: Box<dyn Clock>,
    first: Duration,
    /// The latest engine time that was read, in nanoseconds.
    latest: AtomicU64,
    /// By how much the clock is ahead of engine time, in wrapping nanoseconds.
    offset: AtomicU64,
    /// Held while the offset is changed.
    stepping: Mutex<()>,
}

/// A reading in wrapping nanoseconds.
#[inline]
fn wrapping(shown: Duration) -> u64 {
    let seconds = shown.as_secs().wrapping_mul(1_000_000_000);
    seconds.wrapping_add(u64::from(shown.subsec_nanos()))
}

/// Nanoseconds between two bounds, which are usually one.
#[inline]
fn spread(low: Duration, high: Duration) -> i64 {
    if high == low {
        return 0;
    }
    i64::try_from(high.saturating_sub(low).as_nanos()).unwrap_or(i64::MAX)
}

/// Returns whether `since` nanoseconds can have passed until `now`. Otherwise the clock was set.
#[inline]
fn is_time(since: i64, now: u64) -> bool {
    since >= 0 && (now < REACH || since <= LEAP_MAX)
}

/// Returns whether a reading lies before the latest one only because another thread was faster.
#[inline]
fn is_overtaken(since: i64) -> bool {
    (-OVERTAKEN_MAX..0).contains(&since)
}

impl Given {
    fn new(clock: Box<dyn Clock>) -> Self {
        let first = clock.now();
        Self {
            clock,
            first,
            latest: AtomicU64::new(0),
            offset: AtomicU64::new(wrapping(first)),
            stepping: Mutex::new(()),
        }
    }

    /// Engine time in nanoseconds.
    #[inline]
    fn nanos(&self) -> u64 {
        for _ in 0..TRIES {
            let offset = self.offset.load(Acquire);
            let now = wrapping(self.clock.now()).wrapping_sub(offset);
            let seen = self.latest.load(Acquire);
            // A step in between: the reading may be from before it.
            if self.offset.load(Acquire) != offset {
                continue;
            }
            match now.wrapping_sub(seen) as i64 {
                0 => return seen,
                since if is_time(since, now) => return self.see(now),
                since if is_overtaken(since) => return seen,
                _ => self.step(),
            }
        }
        self.latest.load(Acquire)
    }

    /// A time that engine time is not after.
    // Apart, so that the usual clock's reading is short enough to be compiled into its callers.
    #[cold]
    #[inline(never)]
    fn nanos_bound(&self) -> u64 {
        self.nanos_bounds().1
    }

    /// Two times that enclose engine time.
    #[inline]
    fn nanos_bounds(&self) -> (u64, u64) {
        for _ in 0..TRIES {
            let offset = self.offset.load(Acquire);
            let (low, high) = self.clock.bounds();
            let seen = self.latest.load(Acquire);
            if self.offset.load(Acquire) != offset {
                continue;
            }
            let at_low = wrapping(low).wrapping_sub(offset);
            let since = at_low.wrapping_sub(seen) as i64;
            // Another exact reading of the same time.
            if since == 0 && low == high {
                return (seen, seen);
            }
            let until = since.saturating_add(spread(low, high));
            // Bounds may be as loose as they like: only the upper one tells of a step back.
            if until < -OVERTAKEN_MAX || since > 0 && !is_time(since, at_low) {
                self.step();
                continue;
            }
            let low = if since > 0 { self.see(at_low) } else { seen };
            return (low, seen.saturating_add_signed(until.max(0)).max(low));
        }
        let seen = self.latest.load(Acquire);
        (seen, seen)
    }

    #[inline]
    fn see(&self, now: u64) -> u64 {
        self.latest.fetch_max(now, AcqRel).max(now)
    }

    /// The clock was set, or a thread has slept since it read it: looks again, and changes the
    /// offset.
    #[cold]
    fn step(&self) {
        let _stepping = self.stepping.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = wrapping(self.clock.now());
        let seen = self.latest.load(Acquire);
        let offset = self.offset.load(Acquire);
        let now = shown.wrapping_sub(offset);
        let now = match now.wrapping_sub(seen) as i64 {
            since if is_time(since, now) || is_overtaken(since) => return,
            since if since < 0 => seen,
            _ => seen.saturating_add(LEAP_MAX as u64),
        };
        // First the offset: who sees this time sees what it is counted by.
        self.offset.store(shown.wrapping_sub(now), Release);
        self.latest.fetch_max(now, AcqRel);
    }
}
