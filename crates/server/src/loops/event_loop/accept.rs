//! Accepts new connections, and assigns them to the loops.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mio::net::TcpListener;

use crate::loop_handle::LoopHandle;
use crate::loop_handle::inbox::InboxItem;
use crate::net::listener::{self, Accepted};
use crate::net::output::write_some;
use crate::state::loop_state::LoopState;

/// Connections accepted in a turn.
const ACCEPTS_PER_TURN: usize = 64;

/// The time before the next attempt when the process or the system has no free descriptors.
const RETRY_MS: u64 = 100;

/// The listeners of a loop.
#[derive(Debug)]
pub(super) struct Doors {
    pub(super) listeners: Vec<TcpListener>,
    /// Connections may wait at the listeners.
    pub(super) accepting: bool,
    /// The tick at which accepting is tried again.
    pub(super) retry: Option<u64>,
}

impl Doors {
    /// Accepts what is waiting, within the turn's share. Adds those that are this loop's.
    pub(super) fn accept(&mut self, state: &mut LoopState, own: &mut Vec<Accepted>) {
        self.retry = None;
        let mut left = ACCEPTS_PER_TURN;
        let mut next = 0;
        while left > 0 && next < self.listeners.len() {
            match listener::accept(&self.listeners[next]) {
                Ok(Some(accepted)) => {
                    left -= 1;
                    own.extend(assign(state, accepted));
                }
                Ok(None) => next += 1,
                Err(why) => {
                    tracing::error!(%why, "cannot accept a connection");
                    self.accepting = false;
                    self.retry = Some(state.time.tick + RETRY_MS);
                    return;
                }
            }
        }
        self.accepting = next < self.listeners.len();
    }
}

/// Gives a connection to the loop that has the fewest; those in a long script come last. Returns it
/// if that is this one.
fn assign(state: &mut LoopState, accepted: Accepted) -> Option<Accepted> {
    state.follow_settings();
    let server = Arc::clone(&state.server);
    if server.connected.load(Ordering::Relaxed) >= state.settings.max_clients {
        state.tally.rejected += 1;
        let mut stream = accepted.stream;
        let refusal = b"-ERR max number of clients reached\r\n";
        if let Err(why) = write_some(&mut stream, refusal) {
            tracing::debug!(%why, "a client that was refused had gone already");
        }
        return None;
    }
    server.connected.fetch_add(1, Ordering::Relaxed);
    state.tally.connections += 1;
    let load = |handle: &LoopHandle| {
        let connections = handle.connections.load(Ordering::Relaxed);
        (handle.script.long().is_some(), connections)
    };
    let loads = server.loops.iter().map(load).enumerate();
    let emptiest = loads.min_by_key(|(_, load)| *load);
    let emptiest = emptiest.map_or(state.index, |(i, _)| i);
    server.loops[emptiest]
        .connections
        .fetch_add(1, Ordering::Relaxed);
    if emptiest == state.index {
        return Some(accepted);
    }
    server.loops[emptiest].post(InboxItem::Connection(Box::new(accepted)));
    None
}
