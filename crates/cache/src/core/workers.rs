//! Counts everything that works for a cache: its handles, its threads, its drive futures. The last
//! one to leave ends the cache.
//!
//! Each of them holds a [`WorkerGuard`]. When the last handle goes, that guard tells the other
//! workers to stop. They finish their current step, and leave. The last one to leave does what the
//! others have not done. So no drop waits, and nothing is left undone even if a task is never
//! polled again.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::core::reentrancy;
use crate::core::waiting::{WaiterSlot, Waiting};
use crate::sync::{Condvar, Mutex, lock, wait_on};

/// The end of a cache, as its workers see it. They do not know its types of keys and values.
pub(crate) trait Shutdown: Send + Sync {
    fn workers(&self) -> &Workers;

    /// Tells all workers to stop.
    fn stop(&self);

    /// Empties it and tells the listener, unless that has been done. Does not wait.
    fn finish(&self);
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerKind {
    /// All handles, which count as one worker.
    Handles,
    /// Work on a thread of ours.
    Thread,
    /// A drive future, polled or not.
    Task,
}

/// The number of workers of a cache.
pub(crate) struct Workers {
    counts: Mutex<Counts>,
    /// The last thread has left.
    gone: Condvar,
    waiting: Arc<Waiting>,
}

#[derive(Default)]
struct Counts {
    all: usize,
    threads: usize,
}

/// Held by each worker of a cache. The drop of the last one ends the cache.
pub(crate) struct WorkerGuard {
    cache: Arc<dyn Shutdown>,
    kind: WorkerKind,
}

impl WorkerGuard {
    /// Adds a worker. Never inlined: it contains the drop of a cache, which is much code.
    #[inline(never)]
    pub(crate) fn join<W: Shutdown + 'static>(cache: &Arc<W>, kind: WorkerKind) -> Self {
        let cache: Arc<dyn Shutdown> = Arc::<W>::clone(cache);
        let mut counts = lock(&cache.workers().counts);
        counts.all += 1;
        counts.threads += usize::from(kind == WorkerKind::Thread);
        drop(counts);
        Self { cache, kind }
    }
}

impl Drop for WorkerGuard {
    fn drop(&mut self) {
        if self.kind == WorkerKind::Handles {
            self.cache.stop();
        }
        if self.cache.workers().leave(self.kind) {
            self.cache.finish();
        }
    }
}

impl Workers {
    pub(crate) fn new() -> Self {
        Self {
            counts: Mutex::new(Counts::default()),
            gone: Condvar::new(),
            waiting: Waiting::new(),
        }
    }

    /// Tells whether it was the last one.
    fn leave(&self, kind: WorkerKind) -> bool {
        let mut counts = lock(&self.counts);
        counts.all -= 1;
        let last = counts.all == 0;
        counts.threads -= usize::from(kind == WorkerKind::Thread);
        let threads = counts.threads;
        drop(counts);
        if kind == WorkerKind::Thread && threads == 0 {
            self.gone.notify_all();
            self.waiting.wake_all();
        }
        last
    }

    /// Waits until the last thread has left.
    pub(crate) fn wait_for_threads(&self) {
        let mut counts = lock(&self.counts);
        while counts.threads > 0 {
            counts = wait_on(&self.gone, counts);
        }
    }

    pub(crate) fn place(&self) -> WaiterSlot {
        self.waiting.place()
    }

    /// As [`wait_for_threads`](Self::wait_for_threads), for a task; where others may be waiting for
    /// this thread, it does not wait.
    pub(crate) fn poll_threads(
        &self,
        place: &mut WaiterSlot,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        place.wait(context.waker());
        if lock(&self.counts).threads > 0 && reentrancy::is_free() {
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

/// Work that is done in turns, each when the one before has asked for it or a waker was called.
pub(crate) trait Driven: Send {
    /// Does what there is to do. `waker` asks for the next turn, from any thread. `slept` tells
    /// whether the sleep is over that the last turn has asked for.
    fn turn(&mut self, waker: &Waker, slept: bool) -> Turn;
}

/// The end of a turn: what is to come next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Another turn, once others had theirs.
    Again,
    /// A turn after this time, or when woken; `Duration::MAX` is for ever.
    Sleep(Duration),
    /// The sleep goes on that an earlier turn has begun.
    StillAsleep,
    /// Nothing any more.
    Over,
}
