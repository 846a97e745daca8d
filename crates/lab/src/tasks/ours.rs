//! Our tasks under the passes of `timers`.

use std::hint::black_box;

use tidewheel_scheduler::Tasks;

use super::key;
use crate::timers::subject::{Subject, Tick, ticks};

/// `Tasks` on a virtual clock.
pub(super) struct Ours(pub(super) Tasks<u64, u64>);

impl Subject for Ours {
    fn insert(&mut self, id: u32, delay: u32) {
        self.0.set(key(id), u64::from(id), u64::from(delay), 0);
    }

    fn reschedule(&mut self, id: u32, delay: u32) {
        self.0.move_to(&key(id), u64::from(delay), 0);
    }

    fn cancel(&mut self, id: u32) {
        black_box(self.0.remove(&key(id)));
    }

    fn tick_all(&mut self, last: u32, budget: u32, seen: &mut dyn FnMut(Tick) -> bool) {
        ticks(last, seen, |at| {
            let progress = self.0.advance(u64::from(at), budget, |due| {
                black_box(due);
            });
            progress.fired
        });
    }
}
