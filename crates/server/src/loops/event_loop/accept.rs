//! Accepts new connections, and assigns them to the loops.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::EventLoop;
use crate::loop_handle::inbox::InboxItem;
use crate::net::listener::{self, Accepted};
use crate::net::output::write_some;

/// Connections accepted in a turn.
const ACCEPTS_PER_TURN: usize = 64;

/// The time before the next attempt when the process or the system has no free descriptors.
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
                    self.assign(accepted);
                }
                Ok(None) => next += 1,
                Err(why) => {
                    tracing::error!(%why, "cannot accept a connection");
                    self.accepting = false;
                    self.accept_retry = Some(self.core.now() + RETRY_MS);
                    return;
                }
            }
        }
        self.accepting = next < self.listeners.len();
    }

    /// Gives a connection to the loop that has the fewest.
    fn assign(&mut self, accepted: Accepted) {
        self.core.state.follow_settings();
        let server = Arc::clone(&self.core.state.server);
        if server.connected.load(Ordering::Relaxed) >= self.core.state.settings.max_clients {
            self.core.state.tally.rejected += 1;
            let mut stream = accepted.stream;
            let refusal = b"-ERR max number of clients reached\r\n";
            if let Err(why) = write_some(&mut stream, refusal) {
                tracing::debug!(%why, "a client that was refused had gone already");
            }
            return;
        }
        server.connected.fetch_add(1, Ordering::Relaxed);
        self.core.state.tally.connections += 1;
        let loads = server
            .loops
            .iter()
            .map(|handle| handle.connections.load(Ordering::Relaxed));
        let emptiest = loads.enumerate().min_by_key(|(_, load)| *load);
        let emptiest = emptiest.map_or(self.core.state.index, |(i, _)| i);
        server.loops[emptiest]
            .connections
            .fetch_add(1, Ordering::Relaxed);
        if emptiest == self.core.state.index {
            self.core.adopt(accepted);
        } else {
            server.loops[emptiest].post(InboxItem::Connection(Box::new(accepted)));
        }
    }
}
