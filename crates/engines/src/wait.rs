//! Tests wait for a condition, with a bound.

use std::time::Duration;

use tidewheel_time::monotonic_nanos;

/// The time for which a test waits for a condition.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// The time since a reading of [`monotonic_nanos`].
#[must_use]
pub fn since(nanos: u64) -> Duration {
    Duration::from_nanos(monotonic_nanos().saturating_sub(nanos))
}

/// Looks until there is something, for [`PATIENCE`].
///
/// # Panics
///
/// With the name of what was waited for, if that is too short.
pub fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, look)
}

/// Waits as [`eventually`] does, for so long.
///
/// # Panics
///
/// With the name of what was waited for, if that is too short.
pub fn within<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = monotonic_nanos();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since(begin) < limit, "in vain for {limit:?}: {what}");
        std::thread::sleep(PAUSE);
    }
}
