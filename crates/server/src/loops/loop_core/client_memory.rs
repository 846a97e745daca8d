//! `maxmemory-clients`: closes the biggest clients while all clients together hold too much.
//!
//! A loop that has added to the sum checks it at the end of that turn. All loops check it when a
//! setting has changed, and a loop that copies messages for many receivers checks it while it
//! copies. One check closes as many clients as it takes, on all loops. It visits every client, so
//! there is one check in a tick at most: a second loop waits for the next tick, and sleeps no
//! longer than that.

use std::sync::atomic::Ordering;

use super::parts::LoopCore;
use super::sockets::Sockets;
use crate::loop_handle::inbox::InboxItem;

impl<K: Sockets> LoopCore<K> {
    /// Checks the memory of all clients at the end of a turn. `idle`: the turn has served nobody.
    pub(super) fn check_client_memory(&mut self, idle: bool) {
        if self.state.settings.max_memory_clients == 0 {
            self.memory_check.due = false;
            return;
        }
        let held = self.handle().client_memory.load(Ordering::Relaxed);
        self.memory_check.due |= !idle || held > self.memory_check.held;
        self.memory_check.held = held;
        self.evict_clients_if_due();
    }

    /// Closes clients if that is due.
    fn evict_clients_if_due(&mut self) {
        if !self.clients_hold_too_much() {
            self.memory_check.due = false;
        }
        let clients = &self.state.server.clients;
        if !self.memory_check.due || !clients.claim_check(self.state.time.tick) {
            return;
        }
        self.memory_check.due = false;
        self.evict_clients();
    }

    /// Returns true if all clients together hold more than they may, as far as the loops know.
    pub(super) fn clients_hold_too_much(&self) -> bool {
        let loops = self.state.server.loops.iter();
        let held = loops.map(|handle| handle.client_memory.load(Ordering::Relaxed));
        held.sum::<usize>() as u64 > self.state.settings.max_memory_clients
    }

    /// Closes the biggest clients: its own at once, others through their loops.
    pub(super) fn evict_clients(&mut self) {
        let limit = self.state.settings.max_memory_clients;
        for client in self.server().clients.kill_biggest(limit) {
            tracing::warn!(client = client.id, address = %client.peer, "closed: clients hold too much memory");
            self.state.tally.evicted_clients += 1;
            if client.owner == self.state.index {
                self.close_target(client.target());
            } else {
                self.state.server.loops[client.owner].post(InboxItem::Close(client.target()));
            }
        }
    }
}
