//! A point in an engine's time.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in an engine's time: microseconds since 1970, by the engine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub u64);

/// The end of the year 9999: engines that write times as text know no later ones.
pub(crate) const LATEST: Timestamp = Timestamp(253_402_300_799_999_999);

impl Timestamp {
    /// The time so much later; the end of the year 9999 at the latest. Fractions of a microsecond
    /// count as a whole one.
    #[must_use]
    pub fn plus(self, wait: Duration) -> Self {
        let us = u64::try_from(wait.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(us)).min(LATEST)
    }

    /// The time so much earlier; 1970 at the earliest.
    #[must_use]
    pub fn minus(self, wait: Duration) -> Self {
        let us = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(us))
    }

    /// The time from `earlier` to this; zero if this is not later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// The same time as the standard library's type.
    #[must_use]
    pub fn to_system_time(self) -> SystemTime {
        let since = Duration::from_micros(self.0);
        UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
    }
}

/// Rounded up to microseconds; what lies before 1970 counts as 1970.
impl From<SystemTime> for Timestamp {
    fn from(at: SystemTime) -> Self {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self(0).plus(since)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}
