//! `maxmemory-clients`: closing those who hold most while all clients together hold too much.
//!
//! Whoever adds to the sum looks at it, at the end of that turn; so does everybody when a setting has
//! changed, and who copies messages for many while it copies. One look has as many closed as it takes, whichever loops they belong to. A look visits every
//! client, so there is one in a tick at most: who comes second looks in the next tick, and sleeps no longer
//! than that.

use std::sync::atomic::Ordering;

use super::{LoopCore, Sockets};
use crate::inbox::Parcel;

/// Whether a loop must look at what clients hold.
#[derive(Debug, Default)]
pub(super) struct Watch {
    due: bool,
    /// What the loop's clients held at the end of its last turn.
    held: usize,
}

impl Watch {
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    /// The limit or the clients may have changed.
    pub(super) fn alert(&mut self) {
        self.due = true;
    }
}

impl<K: Sockets> LoopCore<K> {
    /// The end of a turn. `idle`: it has served nobody.
    pub(super) fn watch_clients(&mut self, idle: bool) {
        if self.worker.settings.max_memory_clients == 0 {
            self.watch.due = false;
            return;
        }
        let held = self.handle().client_memory.load(Ordering::Relaxed);
        self.watch.due |= !idle || held > self.watch.held;
        self.watch.held = held;
        self.look_at_clients();
    }

    /// Has clients closed if that is due.
    fn look_at_clients(&mut self) {
        if !self.clients_hold_too_much() {
            self.watch.due = false;
        }
        let clients = &self.worker.server.clients;
        if !self.watch.due || !clients.first_look(self.worker.time.tick) {
            return;
        }
        self.watch.due = false;
        self.evict_clients();
    }

    /// Whether all clients together hold more than they may, as far as the loops know.
    pub(super) fn clients_hold_too_much(&self) -> bool {
        let loops = self.worker.server.loops.iter();
        let held = loops.map(|handle| handle.client_memory.load(Ordering::Relaxed));
        held.sum::<usize>() as u64 > self.worker.settings.max_memory_clients
    }

    /// Closes those who hold most: its own at once, others through their loops.
    pub(super) fn evict_clients(&mut self) {
        let limit = self.worker.settings.max_memory_clients;
        for client in self.server().clients.condemn(limit) {
            tracing::warn!(client = client.id, "closed: clients hold too much memory");
            self.worker.tally.evicted_clients += 1;
            if client.owner == self.worker.index {
                self.close_target(client.target());
            } else {
                self.worker.server.loops[client.owner].post(Parcel::Close(client.target()));
            }
        }
    }
}
