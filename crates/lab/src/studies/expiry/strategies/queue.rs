//! Any timer queue of tidewheel-timer as a strategy: the heaps and the two wheels of the library.
//!
//! The file of each queue there explains how it works. The heap (many event loops, Go's runtime)
//! costs O(log n) for each change and knows the next deadline exactly. The hashed wheel (Netty,
//! go-zero) is O(1) while deadlines lie within one turn, and touches those beyond once in every
//! turn. The hierarchical wheel is O(1) at any distance. All are exact to the millisecond, and take
//! a budget.

use tidewheel_timer::{Timer, TimerQueue};

use super::{Entries, Expiry, Left};

/// A queue that is called when its next deadline comes.
#[derive(Debug)]
pub(super) struct Queue<Q>(pub(super) Q);

impl<E: Entries, Q: TimerQueue + Send + Sync> Expiry<E> for Queue<Q> {
    fn insert(&mut self, entries: &mut E, id: u32, deadline_ms: u64, now_ms: u64) {
        self.0.insert(entries, id, deadline_ms, now_ms);
    }

    fn reschedule(&mut self, entries: &mut E, id: u32, old: Timer, deadline_ms: u64, now_ms: u64) {
        self.0.reschedule(entries, id, old, deadline_ms, now_ms);
    }

    fn cancel(&mut self, entries: &mut E, id: u32, old: Timer) {
        self.0.cancel(entries, id, old);
    }

    fn advance(&mut self, entries: &mut E, now_ms: u64, budget: u32, due: &mut Vec<u32>) -> Left {
        let progress = self.0.advance(entries, now_ms, budget, |entries, found| {
            for &id in found {
                entries.clear(id);
            }
            due.extend_from_slice(found);
        });
        Left::backlog(progress.backlog)
    }

    fn wake(&self) -> Option<u64> {
        self.0.next_deadline()
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
