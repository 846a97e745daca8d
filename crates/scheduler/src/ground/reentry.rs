//! The re-entrancy guard: user code that runs under a lock of ours must not take the same lock
//! again. If it tries, it gets a panic with a message, instead of a deadlock.

use std::cell::Cell;

use crate::ground::sync::thread_local;

/// Locks that one thread may hold at the same time. User code under one scheduler's lock may call
/// another scheduler.
const NESTED_MAX: usize = 8;

/// The locks that this thread holds, by address.
struct HeldLocks {
    /// 0 for nothing.
    innermost: Cell<usize>,
    /// The locks that it took before the innermost one. Mostly there are none.
    outer: [Cell<usize>; NESTED_MAX],
    depth: Cell<usize>,
}

thread_local! {
    static HELD: HeldLocks = const {
        HeldLocks {
            innermost: Cell::new(0),
            outer: [const { Cell::new(0) }; NESTED_MAX],
            depth: Cell::new(0),
        }
    };
}

/// Notes that this thread holds a lock, from just before it is taken until this is dropped.
pub(crate) struct ReentryGuard {
    /// The innermost lock before this one.
    before: usize,
}

impl ReentryGuard {
    /// Notes that this thread takes the lock of `place`. Panics with the message `how` if it holds
    /// that lock already.
    #[inline]
    pub(crate) fn enter<T>(place: &T, how: &str) -> Self {
        let place = std::ptr::from_ref(place).addr();
        HELD.with(|held| {
            let before = held.innermost.get();
            if before != 0 {
                held.nest(before, place, how);
            }
            held.innermost.set(place);
            Self { before }
        })
    }
}

impl HeldLocks {
    #[cold]
    fn nest(&self, before: usize, place: usize, how: &str) {
        let depth = self.depth.get();
        let is_held = before == place || self.outer[..depth].iter().any(|at| at.get() == place);
        assert!(!is_held && depth < NESTED_MAX, "{how}");
        self.outer[depth].set(before);
        self.depth.set(depth + 1);
    }
}

impl Drop for ReentryGuard {
    #[inline]
    fn drop(&mut self) {
        HELD.with(|held| {
            held.innermost.set(self.before);
            if self.before != 0 {
                held.depth.set(held.depth.get() - 1);
            }
        });
    }
}
