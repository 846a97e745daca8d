//! Takes over new connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::parts::{LoopCore, Sockets};
use crate::clients::checks;
use crate::clients::connection::{Connection, Link};
use crate::clients::registry::{Client, ClientFacts};
use crate::config::{ClientAccess, DENIED};
use crate::net::listener::Accepted;
use crate::net::output::write_some;

impl<K: Sockets> LoopCore<K> {
    /// Returns a new connection, which the caller must [`adopt`](Self::adopt).
    pub(crate) fn next_arrival(&mut self) -> Option<Accepted> {
        self.arrivals.pop_front().map(|arrival| *arrival)
    }

    /// Makes a connection this loop's own. Returns its slot, `None` when it was lost or may not
    /// come in.
    pub(crate) fn adopt(&mut self, accepted: Accepted<K::Stream>) -> Option<u32> {
        let Accepted {
            mut stream,
            peer,
            local,
        } = accepted;
        // The settings in force decide, not the loop's copy: they may have changed since it was
        // accepted.
        let access = self.server().config.access(&peer);
        if access == ClientAccess::Denied {
            self.reject(&mut stream, peer);
            return None;
        }
        let now = self.now();
        let slot = self.table.next_slot();
        let settings = &self.state.settings;
        if let Err(why) = self.sockets.register(&mut stream, slot, settings) {
            tracing::debug!(%why, "a connection was lost before it was served");
            self.table.unused(slot);
            self.note_closed();
            return None;
        }
        let may_debug = settings.debug_access.allows(&peer);
        let client = Arc::new(Client {
            id: self.server().clients.next_id(),
            peer,
            local,
            descriptor: self.sockets.descriptor(&stream),
            since: now,
            owner: self.state.index,
            slot,
            killed: AtomicBool::new(false),
            facts: Mutex::new(ClientFacts::new(now)),
            waiting: Mutex::default(),
        });
        self.server().clients.add(Arc::clone(&client));
        let mut conn = Connection::new(client, now);
        conn.session.may_debug = may_debug;
        conn.set(checks::UNAUTHENTICATED, access != ClientAccess::Free);
        self.table.put(slot, Link { stream, conn });
        self.table.file(slot, &self.state.settings);
        self.table.enqueue(slot);
        Some(slot)
    }

    /// Refuses a connection from another machine.
    #[cold]
    fn reject(&mut self, stream: &mut K::Stream, peer: SocketAddr) {
        tracing::debug!(address = %peer, "refused: protected mode is on and no password is set");
        self.state.tally.rejected += 1;
        if let Err(why) = write_some(stream, format!("-{DENIED}\r\n").as_bytes()) {
            tracing::debug!(%why, "a client that was refused had gone already");
        }
        self.note_closed();
    }

    /// Counts a connection that is gone.
    pub(super) fn note_closed(&self) {
        self.handle().connections.fetch_sub(1, Ordering::Relaxed);
        self.server().connected.fetch_sub(1, Ordering::Relaxed);
    }
}
