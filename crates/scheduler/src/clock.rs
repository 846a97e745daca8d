//! The clocks: the only file of this crate that reads one.
#![allow(
    clippy::disallowed_methods,
    reason = "this is the file that the lint sends clock readers to"
)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

/// What time it is.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Time since an origin of the clock's own, never less than before.
    fn now(&self) -> Duration;

    /// Wall time, for [`set_at`](crate::Handle::set_at) alone.
    fn wall(&self) -> SystemTime {
        SystemTime::now()
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

/// A clock that is moved by hand. Clones are the same clock.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock that shows zero; its wall time is then the Unix epoch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(nanos(by), Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Relaxed))
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.now()
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
