//! Takes over new connections.

use super::adopt::{adopt, note_closed};
use super::parts::LoopCore;
use super::sockets::Sockets;
use crate::net::listener::Accepted;

impl<K: Sockets> LoopCore<K> {
    /// Returns a new connection, which the caller must [`adopt`](Self::adopt).
    pub(crate) fn next_arrival(&mut self) -> Option<Accepted> {
        self.arrivals.pop_front().map(|arrival| *arrival)
    }

    /// Makes a connection this loop's own. Returns its slot, `None` when it was lost or may not
    /// come in.
    pub(crate) fn adopt(&mut self, accepted: Accepted<K::Stream>) -> Option<u32> {
        adopt(&mut self.state, &mut self.table, &self.sockets, accepted)
    }

    /// Counts a connection that is gone.
    pub(super) fn note_closed(&self) {
        note_closed(&self.state);
    }
}
