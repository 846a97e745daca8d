//! Wakes all tasks that wait for the same thing, together.

use std::sync::Arc;
use std::task::{Wake, Waker};

use crate::sync::{Mutex, lock};

/// The wakers of tasks that wait for one thing.
pub(crate) struct Waiting(Mutex<Wakers>);

struct Wakers {
    /// Few, in no order.
    all: Vec<(u64, Waker)>,
    next_id: u64,
}

/// One task's slot among the waiting tasks. Dropping it gives the slot up.
pub(crate) struct WaiterSlot {
    waiting: Arc<Waiting>,
    id: u64,
}

impl Waiting {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Wakers {
            all: Vec::new(),
            next_id: 0,
        })))
    }

    /// Returns a slot for one task, which does not wait yet.
    pub(crate) fn place(self: &Arc<Self>) -> WaiterSlot {
        let mut wakers = lock(&self.0);
        wakers.next_id += 1;
        WaiterSlot {
            waiting: Arc::clone(self),
            id: wakers.next_id,
        }
    }

    /// Wakes every waiting task once.
    pub(crate) fn wake_all(&self) {
        let woken = std::mem::take(&mut lock(&self.0).all);
        // Not under the lock: a waker is the runtime's code.
        woken.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

impl Wakers {
    fn take(&mut self, id: u64) -> Option<Waker> {
        let at = self.all.iter().position(|(other, _)| *other == id)?;
        Some(self.all.swap_remove(at).1)
    }
}

impl WaiterSlot {
    /// The next [`Waiting::wake_all`] calls `waker`. Look at what is waited for after this call.
    pub(crate) fn wait(&mut self, waker: &Waker) {
        let waker = waker.clone();
        let mut wakers = lock(&self.waiting.0);
        let old = wakers.take(self.id);
        wakers.all.push((self.id, waker));
        drop(wakers);
        drop(old);
    }

    /// Ends the wait, until the task waits again.
    pub(crate) fn leave(&self) {
        let own = lock(&self.waiting.0).take(self.id);
        drop(own);
    }
}

impl Drop for WaiterSlot {
    fn drop(&mut self) {
        self.leave();
    }
}

/// As a waker, it wakes all waiting tasks.
impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }
}
