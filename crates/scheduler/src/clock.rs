//! The clocks: the only file of this crate that reads one.
#![allow(
    clippy::disallowed_methods,
    reason = "this is the file that the lint sends clock readers to"
)]

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant, SystemTime};

/// What time it is.
///
/// Threads sleep in real time until a clock is expected to show their deadline. So a clock runs as fast as
/// real time, or it wakes those who sleep whenever it is moved.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Time since an origin of the clock's own. Any origin will do: a scheduler counts from its first reading,
    /// for 34 years. A clock that goes back stands still for it until it has caught up.
    fn now(&self) -> Duration;

    /// Wall time, for [`set_at`](crate::Handle::set_at) and [`Durable`](crate::Durable).
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    /// A thread is about to sleep by this clock: `sleeper` is to be woken once, at the next move by hand.
    /// Called anew for each sleep. A clock that runs by itself ignores it.
    fn wake_when_moved(&self, sleeper: &Waker) {
        let _ = sleeper;
    }
}

/// The operating system's monotonic clock.
#[derive(Debug, Clone)]
pub struct SystemClock(Instant);

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl SystemClock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A clock that is moved by hand. Clones are the same clock, and a move wakes every scheduler that sleeps by it.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<Hands>);

#[derive(Debug, Default)]
struct Hands {
    nanos: AtomicU64,
    /// Who sleeps, since the last move: each scheduler's thread once.
    sleepers: Mutex<Vec<Waker>>,
}

impl ManualClock {
    /// A clock that shows zero; its wall time is then the Unix epoch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock on, and wakes who sleeps by it. It stands still 584 years after its start.
    pub fn advance(&self, by: Duration) {
        let later = |nanos_now: u64| Some(nanos_now.saturating_add(nanos(by)));
        let _ = self.0.nanos.fetch_update(SeqCst, SeqCst, later);
        let sleepers = std::mem::take(&mut *self.0.sleepers());
        sleepers.into_iter().for_each(Waker::wake);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.nanos.load(SeqCst))
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.now()
    }

    fn wake_when_moved(&self, sleeper: &Waker) {
        let mut sleepers = self.0.sleepers();
        if !sleepers.iter().any(|other| other.will_wake(sleeper)) {
            sleepers.push(sleeper.clone());
        }
    }
}

impl Hands {
    fn sleepers(&self) -> std::sync::MutexGuard<'_, Vec<Waker>> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// tokio's clock, which its tests may pause.
#[cfg(feature = "tokio")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokioClock(tokio::time::Instant);

#[cfg(feature = "tokio")]
impl TokioClock {
    pub(crate) fn new() -> Self {
        Self(tokio::time::Instant::now())
    }

    /// Nanoseconds since the origin.
    pub(crate) fn nanos(self) -> u64 {
        nanos(self.0.elapsed())
    }

    /// The instant so many nanoseconds after the origin; of one too far to say, a year from now.
    pub(crate) fn instant(self, nanos: u64) -> tokio::time::Instant {
        const FAR: Duration = Duration::from_secs(365 * 86_400);
        let at = self.0.checked_add(Duration::from_nanos(nanos));
        at.unwrap_or_else(|| tokio::time::Instant::now() + FAR)
    }
}

/// Nanoseconds, saturating after 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
