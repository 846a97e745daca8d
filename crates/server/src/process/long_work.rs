//! Threads that run long commands, so that no event loop stands still for one.
//!
//! They also forget the keys that a client has watched, if these are many.
//!
//! The keyspace hands tickets over in the order in which they may run, and never two that need the
//! same shard: see `tidewheel-keyspace`'s `claims.rs`. So the number of tickets that wait here is
//! bounded by the number of shards.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};
use tidewheel_keyspace::{Seat, Ticket, Watching};

use crate::loop_handle::inbox::{Item, Target};
use crate::state::server::Server;

/// Threads: a short one of the long commands need not wait for the longest.
const THREADS: usize = 4;

/// Watched keys that an event loop forgets by itself.
const WATCHED_MAX: usize = 256;

/// What waits for a thread.
#[derive(Debug, Default)]
pub(crate) struct LongWork {
    queue: Mutex<Queue>,
    /// Commands since the start.
    taken: AtomicU64,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    work: VecDeque<Work>,
    ended: bool,
}

/// One piece of work.
#[derive(Debug)]
pub(crate) enum Work {
    /// A command that may run.
    Command(Arc<Ticket>),
    /// A client watches these keys no longer.
    Unwatch(Box<Watching>),
}

impl LongWork {
    /// Adds a command.
    pub(crate) fn push(&self, ticket: Arc<Ticket>) {
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.add(Work::Command(ticket));
    }

    fn add(&self, work: Work) {
        self.queue.lock().work.push_back(work);
        self.changed.notify_one();
    }

    /// How many there were since the start.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Ends the threads as soon as they have run what is there.
    pub(crate) fn end(&self) {
        self.queue.lock().ended = true;
        self.changed.notify_all();
    }

    /// The next piece, if one is there.
    #[cfg(test)]
    pub(crate) fn take(&self) -> Option<Work> {
        self.queue.lock().work.pop_front()
    }

    /// Waits for the next piece; `None` at the end.
    fn next(&self) -> Option<Work> {
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

/// Starts the threads. They end with [`LongWork::end`].
pub(crate) fn start(server: &Arc<Server>) -> std::io::Result<()> {
    for number in 0..THREADS {
        let server = Arc::clone(server);
        let thread = std::thread::Builder::new().name(format!("long-{number}"));
        thread.spawn(move || {
            let mut seat = server.keyspace.seat();
            while let Some(work) = server.long_work.next() {
                match work {
                    Work::Command(ticket) => run(&server, &mut seat, ticket),
                    Work::Unwatch(watching) => server.keyspace.unwatch(*watching),
                }
            }
        })?;
    }
    Ok(())
}

impl Server {
    /// A client watches these keys no longer. Very many are forgotten elsewhere.
    pub(crate) fn unwatch(&self, watching: Box<Watching>) {
        if watching.len() > WATCHED_MAX {
            self.long_work.add(Work::Unwatch(watching));
        } else {
            self.keyspace.unwatch(*watching);
        }
    }
}

/// Runs one command. If it panics, by a mistake of ours, only its client suffers.
pub(crate) fn run(server: &Server, seat: &mut Seat, ticket: Arc<Ticket>) {
    let waiter = ticket.waiter;
    let time = server.clock.now();
    let ran = catch_unwind(AssertUnwindSafe(|| {
        server.keyspace.run_long(seat, time, ticket)
    }));
    let item = match ran {
        Ok(served) => Item::Served(Box::new(served)),
        Err(_) => {
            seat.leave();
            tracing::error!(client = waiter.id, "closed: its command panicked");
            Item::Close(Target {
                id: waiter.id,
                slot: waiter.slot,
            })
        }
    };
    server.loops[waiter.owner].post(item);
}
