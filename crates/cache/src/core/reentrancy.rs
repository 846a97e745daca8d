//! Re-entrancy guards: they note the user code that this thread runs, and for which caches, so that
//! it does not wait for itself.
//!
//! An example: a loader computes key 1, and writes key 2 on the way. The listener's queue is full.
//! If the loader waited for the listener, and the listener asked for key 1, both would wait for
//! ever. So there are four rules:
//!
//! 1. A thread that runs a loader or a closure waits for no listener: neither for its turn to
//!    deliver, nor for room in the queue. It does not call that cache's listener either. It
//!    delivers its events when it leaves the outermost loader or closure.
//! 2. A thread that runs one cache's listener waits for no other cache's listener.
//! 3. A thread that holds a shard of one cache, in a `view` closure or a `Clone`, and changes
//!    another cache from there, waits for no listener.
//! 4. A thread of ours that works for caches waits for no listener, whatever user code it runs.

use std::cell::{Cell, RefCell};

use crate::sync::{NestedCaches, holds_a_shard, thread_local};

thread_local! {
    /// The caches whose events this thread is delivering, each in a listener of the one before.
    /// Where there are too many, events wait.
    static LISTENERS: NestedCaches = const { NestedCaches::new() };

    /// True if this thread works for caches.
    static WORKS: Cell<bool> = const { Cell::new(false) };

    /// The caches of which this thread leads loads or holds latches, each as often as it does.
    static LEADS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Notes that this thread delivers a cache's events.
pub(crate) struct ListenerGuard;

impl ListenerGuard {
    /// `None` when it does already.
    pub(crate) fn enter(cache: usize) -> Option<Self> {
        LISTENERS.with(|listeners| {
            listeners.has_room_for(cache).then(|| {
                listeners.enter(cache);
                Self
            })
        })
    }

    /// Returns whether this thread runs the listener of another cache.
    fn is_nested() -> bool {
        LISTENERS.with(NestedCaches::depth) > 1
    }
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        LISTENERS.with(NestedCaches::leave);
    }
}

/// Notes that this thread runs a loader or closure of a cache, or has yet to end what it began with
/// one.
pub(crate) struct LoaderGuard {
    /// A thread that is ending keeps no notes any more.
    noted: bool,
}

impl LoaderGuard {
    pub(crate) fn enter(cache: usize) -> Self {
        let noted = LEADS.try_with(|leads| leads.borrow_mut().push(cache));
        Self {
            noted: noted.is_ok(),
        }
    }

    /// Returns whether this thread runs a loader or closure of the cache.
    pub(crate) fn is_in(cache: usize) -> bool {
        LEADS
            .try_with(|leads| leads.borrow().contains(&cache))
            .unwrap_or(false)
    }

    fn is_in_any() -> bool {
        LEADS
            .try_with(|leads| !leads.borrow().is_empty())
            .unwrap_or(false)
    }
}

impl Drop for LoaderGuard {
    fn drop(&mut self) {
        if self.noted {
            // They end in the order opposite to that in which they began; a thread that is ending
            // keeps no notes.
            let _ = LEADS.try_with(|leads| leads.borrow_mut().pop());
        }
    }
}

/// Returns whether this thread may wait until another one has delivered its events.
pub(crate) fn may_wait() -> bool {
    !ListenerGuard::is_nested()
        && !LoaderGuard::is_in_any()
        && !holds_a_shard()
        && !WORKS.with(Cell::get)
}

/// Returns whether this thread may call a cache's listener.
pub(crate) fn may_tell(cache: usize) -> bool {
    !LoaderGuard::is_in(cache) && LISTENERS.with(|listeners| listeners.has_room_for(cache))
}

/// Returns whether no other thread can be waiting for this one: it runs no user code, and is no
/// worker of a cache.
pub(crate) fn is_free() -> bool {
    let in_a_listener = LISTENERS.with(NestedCaches::depth) > 0;
    !in_a_listener && !LoaderGuard::is_in_any() && !holds_a_shard() && !WORKS.with(Cell::get)
}

/// Notes that this thread works for caches. From here on it waits for no listener, whatever user
/// code it runs.
#[cfg(feature = "system")]
pub(crate) fn work_for_caches() {
    WORKS.with(|works| works.set(true));
}
