//! Yields the processor to other threads between two passes of expiry.
//!
//! An example: two loops expire what is due in a tick, half a millisecond's work for each, on a
//! machine with two processors. A client that is about to run would wait until one of them sleeps.
//! So a loop yields its processor after each pass. A client needs only a few microseconds. But
//! another busy thread may keep the processor for milliseconds. After such a yield the loop does
//! not yield for a while.

use crate::time::clock::{Clock, micros};

/// The longest yield, in microseconds, after which the next pass yields again. After a longer one,
/// another thread is busy.
const LONG_US: u64 = 300;

/// The time after a long yield in which the loop does not yield.
const REST_MS: u64 = 200;

/// Decides whether a loop yields its processor.
#[derive(Debug, Default)]
pub(super) struct YieldPolicy {
    /// The tick from which on it may yield again.
    again_at: u64,
}

impl YieldPolicy {
    /// Yields the processor, unless that took too long lately.
    pub(super) fn yield_now(&mut self, clock: &Clock) {
        let before = clock.now();
        if before.tick < self.again_at {
            return;
        }
        std::thread::yield_now();
        let after = clock.now();
        if micros(after).saturating_sub(micros(before)) > LONG_US {
            self.again_at = after.tick + REST_MS;
        }
    }
}
