//! Threads that run long commands, so that no event loop stops for one.
//!
//! They also forget the keys that a client has watched, if these are many.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tidewheel_keyspace::{Seat, Ticket, Watching};

use crate::loop_handle::inbox::{InboxItem, Target};
use crate::process::long_work::Work;
use crate::state::server::Server;

/// The number of threads: with several, a short one of the long commands need not wait for the
/// longest.
const THREADS: usize = 4;

/// Watched keys that an event loop forgets by itself.
const WATCHED_MAX: usize = 256;

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
    /// Ends a client's watch of these keys; if there are very many, on a thread for long work.
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
        Ok(served) => InboxItem::Served(Box::new(served)),
        Err(_) => {
            seat.leave();
            server.keyspace.forgo_record();
            tracing::error!(client = waiter.id, "closed: its command panicked");
            InboxItem::Close(Target {
                id: waiter.id,
                slot: waiter.slot,
            })
        }
    };
    server.loops[waiter.owner].post(item);
}
