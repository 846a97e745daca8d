//! The walk: once a second, every deadline is compared with the clock.
//!
//! It keeps nothing and costs nothing to tell, but every second costs O(n), whether anything is due or
//! not. What it finds is up to a second late. Many caches do so
//! that began small. Here it walks over deadlines that lie beside each other, which is the kindest form
//! of it: a walk over the entries of a hash map reads their keys and gaps as well.

use tidewheel_timer::Timer;

use super::{Entries, Expiry, Left};

const EVERY_MS: u64 = 1_000;

/// A walk over all entries, once a second.
#[derive(Debug)]
pub(super) struct Scan {
    next_ms: u64,
}

impl Scan {
    pub(super) fn new(now_ms: u64) -> Self {
        Self {
            next_ms: now_ms.saturating_add(EVERY_MS),
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
        // Seconds that were slept through are not made up for.
        let missed = (now_ms - self.next_ms) / EVERY_MS;
        self.next_ms = self.next_ms.saturating_add((missed + 1) * EVERY_MS);
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
