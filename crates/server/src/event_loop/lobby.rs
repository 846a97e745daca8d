//! New connections: accepting them, dealing them to the loops, and making them a loop's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::{Interest, Token};
use parking_lot::Mutex;

use super::EventLoop;
use crate::clients::{Client, Facts};
use crate::connection::{Connection, gate};
use crate::listener::{self, Accepted};
use crate::loop_handle::Parcel;
use crate::output::write_some;

/// Connections accepted in a turn.
const ACCEPTS_PER_TURN: usize = 64;

/// How long to wait before accepting again when the process or the system is out of descriptors.
const RETRY_MS: u64 = 100;

impl EventLoop {
    /// Accepts what is waiting, within the turn's share.
    pub(super) fn accept(&mut self) {
        self.accept_retry = None;
        let mut left = ACCEPTS_PER_TURN;
        let mut next = 0;
        while left > 0 && next < self.listeners.len() {
            match listener::accept(&self.listeners[next]) {
                Ok(Some(accepted)) => {
                    left -= 1;
                    self.deal(accepted);
                }
                Ok(None) => next += 1,
                Err(why) => {
                    tracing::error!(%why, "cannot accept a connection");
                    self.accepting = false;
                    self.accept_retry = Some(self.now() + RETRY_MS);
                    return;
                }
            }
        }
        self.accepting = next < self.listeners.len();
    }

    /// Gives a connection to the loop that has fewest.
    fn deal(&mut self, accepted: Accepted) {
        let server = Arc::clone(&self.worker.server);
        if server.connected.load(Ordering::Relaxed) >= self.worker.settings.max_clients {
            self.worker.tally.rejected += 1;
            let mut stream = accepted.stream;
            let refusal = b"-ERR max number of clients reached\r\n";
            if let Err(why) = write_some(&mut stream, refusal) {
                tracing::debug!(%why, "a client that was refused had gone already");
            }
            return;
        }
        server.connected.fetch_add(1, Ordering::Relaxed);
        self.worker.tally.connections += 1;
        let loads = server
            .loops
            .iter()
            .map(|handle| handle.connections.load(Ordering::Relaxed));
        let emptiest = loads.enumerate().min_by_key(|(_, load)| *load);
        let emptiest = emptiest.map_or(self.worker.index, |(i, _)| i);
        server.loops[emptiest]
            .connections
            .fetch_add(1, Ordering::Relaxed);
        if emptiest == self.worker.index {
            self.adopt(accepted);
        } else {
            server.loops[emptiest].post(Parcel::Connection(Box::new(accepted)));
        }
    }

    /// Makes a connection this loop's own.
    pub(super) fn adopt(&mut self, accepted: Accepted) {
        let Accepted {
            mut stream,
            peer,
            local,
        } = accepted;
        let now = self.now();
        let slot = self.table.next_place();
        // Both, once: edges come only when something changes, so interest need not follow the state.
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered =
            listener::tune(&stream, self.worker.settings.tcp_keepalive_s).and_then(|()| {
                let registry = self.poll.registry();
                registry.register(&mut stream, Token(slot as usize), interest)
            });
        if let Err(why) = registered {
            tracing::debug!(%why, "a connection was lost before it was served");
            self.table.unused(slot);
            self.forget_one();
            return;
        }
        let client = Arc::new(Client {
            id: self.server().clients.next_id(),
            peer,
            local,
            descriptor: descriptor(&stream),
            since: now,
            owner: self.worker.index,
            slot,
            killed: AtomicBool::new(false),
            facts: Mutex::new(Facts::new(now)),
        });
        self.server().clients.add(Arc::clone(&client));
        let mut conn = Connection::new(stream, client, now);
        conn.set(
            gate::UNAUTHENTICATED,
            !self.worker.settings.password.is_empty(),
        );
        self.table.put(slot, conn);
        self.table.file(slot, &self.worker.settings);
        self.table.enqueue(slot);
    }

    /// A connection is gone.
    pub(super) fn forget_one(&self) {
        self.handle().connections.fetch_sub(1, Ordering::Relaxed);
        self.server().connected.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(unix)]
fn descriptor(stream: &mio::net::TcpStream) -> i64 {
    use std::os::fd::AsRawFd as _;
    i64::from(stream.as_raw_fd())
}

#[cfg(not(unix))]
fn descriptor(_: &mio::net::TcpStream) -> i64 {
    -1
}
