//! The queue of work for the threads that run long commands.
//!
//! The keyspace hands tickets over in the order in which they may run, and never two that need the
//! same shard: see `tidewheel-keyspace`'s `claims.rs`. So the number of tickets that wait here is
//! bounded by the number of shards.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};
use tidewheel_keyspace::{Ticket, Watching};

/// The queue of work, and the signal that it has changed.
#[derive(Debug, Default)]
pub(crate) struct LongWork {
    queue: Mutex<WorkQueue>,
    /// The number of commands since the start.
    taken: AtomicU64,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct WorkQueue {
    work: VecDeque<Work>,
    ended: bool,
}

/// One piece of work.
#[derive(Debug)]
pub(crate) enum Work {
    /// A command that may run.
    Command(Arc<Ticket>),
    /// Keys that a client no longer watches.
    Unwatch(Box<Watching>),
}

impl LongWork {
    /// Adds a command.
    pub(crate) fn push(&self, ticket: Arc<Ticket>) {
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.add(Work::Command(ticket));
    }

    pub(crate) fn add(&self, work: Work) {
        self.queue.lock().work.push_back(work);
        self.changed.notify_one();
    }

    /// Returns the number of commands since the start.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Ends the threads as soon as they have run what is there.
    pub(crate) fn end(&self) {
        self.queue.lock().ended = true;
        self.changed.notify_all();
    }

    /// Takes the next piece, if one is there.
    #[cfg(test)]
    pub(crate) fn take(&self) -> Option<Work> {
        self.queue.lock().work.pop_front()
    }

    /// Waits for the next piece; `None` at the end.
    pub(crate) fn next(&self) -> Option<Work> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(work) = queue.work.pop_front() {
                return Some(work);
            }
            if queue.ended {
                return None;
            }
            self.changed.wait(&mut queue);
        }
    }
}
