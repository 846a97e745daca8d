//! A task can be set at a point in time: a wall time, or an instant.

use std::time::{Duration, Instant, SystemTime};

use tidewheel_time::until_instant;

/// A point in time: a [`SystemTime`] or an [`Instant`].
///
/// An instant is one of the operating system's clock, also if the scheduler has another one. Either
/// clock is read once, when the task is set.
pub trait PointInTime: sealed::Sealed {}

impl PointInTime for SystemTime {}
impl PointInTime for Instant {}

pub(crate) mod sealed {
    use super::*;

    pub trait Sealed {
        /// The time until then: zero if it has passed. `wall` reads the scheduler's wall time.
        fn delay(self, wall: impl FnOnce() -> SystemTime) -> Duration;
    }

    impl Sealed for SystemTime {
        fn delay(self, wall: impl FnOnce() -> Self) -> Duration {
            self.duration_since(wall()).unwrap_or(Duration::ZERO)
        }
    }

    impl Sealed for Instant {
        fn delay(self, _: impl FnOnce() -> SystemTime) -> Duration {
            until_instant(self)
        }
    }
}
