//! Whether events are wanted, and whether there is room for more of them.

use crate::removal::RemovalCause;
use crate::sync::{AtomicUsize, Ordering::Relaxed};

/// Events that a full queue of an async listener takes beyond its limit: what one hold of the
/// driver may remove.
const OVER_LIMIT: usize = 64;

/// The behaviour of a full listener queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnFull {
    /// No event is lost. A call that causes an event delivers the whole queue to the listener
    /// before it returns, or waits until another thread has done so. The driver removes nothing
    /// more until there is room; entries that are due stay invisible.
    ///
    /// A thread that others may be waiting for never waits here. A listener, a loader and a closure
    /// (of [`Cache::get_or_load`](crate::Cache::get_or_load),
    /// [`Cache::update`](crate::Cache::update) and similar calls) may write although the queue is
    /// full. The queue is delivered when they end. A closure of [`Cache::view`](crate::Cache::view)
    /// of another cache leaves the delivery to the next writer. So the queue exceeds its limit by
    /// at most two things: the events of the listener, loaders and closures that run now, and the
    /// events of one operation of each other thread.
    ///
    /// Nobody but a task can call an async listener, and no writer waits for a task. With such a
    /// listener only the driver waits. What callers cause while the queue is full (with 64 events
    /// more than its limit) is dropped and counted in
    /// [`Stats::events_dropped`](crate::Stats::events_dropped), except what leaves because the
    /// cache is closed.
    #[default]
    Wait,
    /// The event is dropped and counted. When a shard is emptied at once, its events are treated as
    /// one: all are queued, or all are dropped.
    Drop,
}

/// Who calls the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listens {
    /// There is none.
    Nobody,
    /// Any thread.
    Threads,
    /// A task: the listener is async.
    Task,
}

/// How much is in the listener's queue, over all shards.
pub(crate) struct EventRoom {
    listens: Listens,
    limit: usize,
    on_full: OnFull,
    pending: AtomicUsize,
}

impl EventRoom {
    pub(crate) fn new(listens: Listens, limit: usize, on_full: OnFull) -> Self {
        Self {
            listens,
            limit,
            on_full,
            pending: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub(crate) fn has_listener(&self) -> bool {
        self.listens != Listens::Nobody
    }

    /// Returns whether only a task can call the listener.
    pub(crate) fn is_async(&self) -> bool {
        self.listens == Listens::Task
    }

    /// Events that the listener was not told of.
    pub(crate) fn pending(&self) -> usize {
        self.pending.load(Relaxed)
    }

    pub(crate) fn add(&self, events: usize) {
        self.pending.fetch_add(events, Relaxed);
    }

    /// The listener was told of one event.
    pub(crate) fn told(&self) {
        self.pending.fetch_sub(1, Relaxed);
    }

    /// Returns whether the queue is full and the policy loses no event.
    pub(crate) fn must_wait(&self) -> bool {
        self.has_listener() && self.on_full == OnFull::Wait && self.pending() >= self.limit
    }

    /// Returns whether the queue is full and the policy drops new events.
    pub(crate) fn is_full_and_lossy(&self, cause: RemovalCause) -> bool {
        match self.on_full {
            OnFull::Drop => self.pending() >= self.limit,
            // The driver has waited, and nobody else can call an async listener.
            OnFull::Wait => {
                cause != RemovalCause::Closed
                    && self.pending() >= self.limit.saturating_add(OVER_LIMIT)
                    && self.is_async()
            }
        }
    }
}
