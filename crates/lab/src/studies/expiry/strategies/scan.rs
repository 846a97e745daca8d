//! The walk: once a second, every deadline is compared with the clock.
//!
//! It keeps nothing and costs nothing to tell, but every second costs O(n), whether anything is due
//! or not. What it finds is up to a second late. Many caches do so that began small. Here it walks
//! over deadlines that lie beside each other, which is the kindest form of it: a walk over the
//! entries of a hash map reads their keys and gaps as well.

use tidewheel_timer::Timer;

use super::{Entries, Expiry, Left};

/// A walk over all entries, every so often.
#[derive(Debug)]
pub(crate) struct Scan {
    every_ms: u64,
    next_ms: u64,
}

impl Scan {
    pub(crate) fn new(now_ms: u64, every_ms: u64) -> Self {
        Self {
            every_ms,
            next_ms: now_ms.saturating_add(every_ms),
        }
    }
}

impl<E: Entries> Expiry<E> for Scan {
    fn insert(&mut self, _: &mut E, _: u32, _: u64, _: u64) {}

    fn reschedule(&mut self, _: &mut E, _: u32, _: Timer, _: u64, _: u64) {}

    fn cancel(&mut self, _: &mut E, _: u32, _: Timer) {}

    fn advance(&mut self, entries: &mut E, now_ms: u64, _: u32, due: &mut Vec<u32>) -> Left {
        if now_ms < self.next_ms {
            return Left::Nothing;
        }
        // Walks that were slept through are not made up for.
        let missed = (now_ms - self.next_ms) / self.every_ms;
        self.next_ms = self.next_ms.saturating_add((missed + 1) * self.every_ms);
        for id in 0..entries.bound() {
            if entries.timer(id).is_some_and(|t| t.deadline <= now_ms) {
                entries.clear(id);
                due.push(id);
            }
        }
        Left::Nothing
    }

    fn wake(&self) -> Option<u64> {
        Some(self.next_ms)
    }

    fn bytes(&self) -> usize {
        0
    }
}
