//! Assigns new connections to the loops.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::config::Settings;
use crate::loop_handle::LoopHandle;
use crate::loop_handle::inbox::InboxItem;
use crate::net::listener::Accepted;
use crate::state::server::Server;

/// Counts a connection that was accepted. False if there are as many as may be.
pub(super) fn lets_in(server: &Server, settings: &Settings) -> bool {
    takes_place(&server.connected, settings.max_clients)
}

/// Takes one of so many places. Several threads accept, and the last place is one's only.
fn takes_place(taken: &AtomicUsize, most: usize) -> bool {
    let one_more = |taken| (taken < most).then_some(taken + 1);
    let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
    taken.fetch_update(set, read, one_more).is_ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each looked first and counted then.
    #[test]
    fn no_more_come_in_than_there_are_places_also_if_all_come_at_once() {
        let (taken, beyond) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let come_and_go = || {
            for _ in 0..200_000 {
                if takes_place(&taken, 1) {
                    let inside = taken.fetch_sub(1, Ordering::Relaxed);
                    beyond.fetch_max(inside - 1, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(come_and_go);
            }
        });
        assert_eq!(beyond.into_inner(), 0);
    }
}
