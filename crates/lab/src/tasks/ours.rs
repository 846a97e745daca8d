//! Our tasks under the passes of `timers`.

use std::hint::black_box;

use tidewheel_scheduler::Tasks;

use super::key;
use crate::timers::subject::{Subject, Tick, ticks};

/// `Tasks` on a virtual clock.
pub(super) struct Ours {
    tasks: Tasks<u64, u64>,
}

impl Ours {
    pub(super) fn new() -> Self {
        Self {
            tasks: Tasks::new(),
        }
    }
}

impl Subject for Ours {
    fn insert_all(&mut self, delays: &[u32]) {
        for (id, &delay) in (0..).zip(delays) {
            self.tasks.set(key(id), u64::from(id), u64::from(delay), 0);
        }
    }

    fn reschedule_all(&mut self, order: &[u32], delays: &[u32]) {
        for (&id, &delay) in order.iter().zip(delays) {
            self.tasks.move_to(&key(id), u64::from(delay), 0);
        }
    }

    fn cancel_all(&mut self, order: &[u32]) {
        for &id in order {
            black_box(self.tasks.remove(&key(id)));
        }
    }

    fn tick_all(&mut self, last: u32, budget: u32, seen: &mut dyn FnMut(Tick) -> bool) {
        ticks(last, seen, |at| {
            let progress = self.tasks.advance(u64::from(at), budget, |due| {
                black_box(due);
            });
            (progress.fired, progress.backlog)
        });
    }

    fn own_bytes(&self) -> Option<usize> {
        Some(self.tasks.held_bytes())
    }
}
