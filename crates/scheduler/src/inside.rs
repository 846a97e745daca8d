//! The rule about re-entry: user code that runs under a lock of ours must not ask for the same lock again.

use std::cell::Cell;

use crate::sync::thread_local;

/// Locks that one thread may hold at the same time, each taken by code that runs under the one before.
const NESTED_MAX: usize = 8;

/// What this thread holds, by address.
struct Held {
    places: [Cell<usize>; NESTED_MAX],
    depth: Cell<usize>,
}

thread_local! {
    static HELD: Held = const {
        Held { places: [const { Cell::new(0) }; NESTED_MAX], depth: Cell::new(0) }
    };
}

/// Notes that this thread is about to lock something, until it is dropped.
pub(crate) struct Inside(());

impl Inside {
    /// Whoever would wait for itself panics, and says `how` it came to that.
    #[inline]
    pub(crate) fn enter<T>(place: &T, how: &str) -> Self {
        let place = std::ptr::from_ref(place).addr();
        HELD.with(|held| {
            let depth = held.depth.get();
            if depth > 0 {
                held.check(place, how);
            }
            held.places[depth].set(place);
            held.depth.set(depth + 1);
        });
        Self(())
    }
}

impl Held {
    #[cold]
    fn check(&self, place: usize, how: &str) {
        let held = &self.places[..self.depth.get()];
        let is_free = held.len() < NESTED_MAX && held.iter().all(|other| other.get() != place);
        assert!(is_free, "{how}");
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        HELD.with(|held| held.depth.set(held.depth.get() - 1));
    }
}
