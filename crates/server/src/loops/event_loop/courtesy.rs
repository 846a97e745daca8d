//! Yields the processor to other threads between two passes of expiry.
//!
//! An example: two loops expire what is due in a tick, half a millisecond's work for each, on a
//! machine with two processors. A client that is about to run would wait until one of them sleeps.
//! So a loop yields its processor after each pass. A client's few microseconds cost the expiry
//! nothing; but a stranger that is busy may keep the processor for milliseconds. Whoever has met
//! one yields to nobody for a while.

use crate::time::clock::{Clock, micros};

/// A loop that got its processor back later than this has met somebody busy.
const LONG_US: u64 = 300;

/// For how long it yields to nobody then.
const REST_MS: u64 = 200;

/// Decides whether a loop yields its processor.
#[derive(Debug, Default)]
pub(super) struct Courtesy {
    /// The tick from which on it may yield again.
    again_at: u64,
}

impl Courtesy {
    /// Yields the processor, unless that took too long lately.
    pub(super) fn give_way(&mut self, clock: &Clock) {
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
