//! Assigns new connections to the loops.

use std::sync::atomic::Ordering;

use crate::config::Settings;
use crate::loop_handle::LoopHandle;
use crate::loop_handle::inbox::InboxItem;
use crate::net::listener::Accepted;
use crate::state::server::Server;

/// Counts a connection that was accepted. False if there are as many as may be.
pub(super) fn lets_in(server: &Server, settings: &Settings) -> bool {
    let room = server.connected.load(Ordering::Relaxed) < settings.max_clients;
    if room {
        server.connected.fetch_add(1, Ordering::Relaxed);
    }
    room
}

/// Gives a connection to the loop that has the fewest; those in a long script come last. Returns it
/// if that is the caller's own.
pub(super) fn to_emptiest(
    server: &Server,
    accepted: Accepted,
    own: Option<usize>,
) -> Option<Accepted> {
    let load = |handle: &LoopHandle| {
        let connections = handle.connections.load(Ordering::Relaxed);
        (handle.script.long().is_some(), connections)
    };
    let loads = server.loops.iter().map(load).enumerate();
    let emptiest = loads.min_by_key(|(_, load)| *load).map_or(0, |(i, _)| i);
    let handle = &server.loops[emptiest];
    handle.connections.fetch_add(1, Ordering::Relaxed);
    if own == Some(emptiest) {
        return Some(accepted);
    }
    handle.post(InboxItem::Connection(Box::new(accepted)));
    None
}
