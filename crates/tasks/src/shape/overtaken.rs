//! A change that another one has overtaken is tried again, after a pause.

use std::time::Duration;

use tidewheel_time::monotonic_nanos;

use crate::shape::retry::Retry;

/// The number of tries of a change, of which others make one at the same time.
pub(crate) const TRIES: u32 = 20;

/// The pause after a try that another change has overtaken: a random one, longer each time, so that
/// sixty who began together do not meet again.
pub(crate) fn pause_after(tried: u32) -> Duration {
    let (base, cap) = (Duration::from_millis(2), Duration::from_millis(128));
    let pauses = Retry::default().base(base).cap(cap).factor(2.0).jitter(1.0);
    pauses.delay(tried, monotonic_nanos())
}
