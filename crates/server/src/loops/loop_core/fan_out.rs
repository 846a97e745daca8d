//! Copies messages to each receiver, within its own limit and that of all clients.
//!
//! A message waits once for all receivers of a loop. Only the copies take memory for each receiver:
//!
//! 1. A receiver whose limit is reached gets no more copies.
//! 2. Whenever the loop has copied a [portion](super::uncounted_copies), it looks at what all
//!    clients hold.
//! 3. If that is too much, it sends the copies, as far as the sockets take them.
//! 4. If it is still too much, the biggest clients are closed. Then copying goes on.

use super::parts::LoopCore;
use super::sockets::Sockets;
use crate::loop_handle::inbox::{Messages, Target};

impl<K: Sockets> LoopCore<K> {
    /// Copies messages into the output of their receivers.
    pub(super) fn append(&mut self, run: &Messages) {
        for target in run.targets.iter() {
            self.append_to(*target, run);
        }
    }

    fn append_to(&mut self, target: Target, run: &Messages) {
        let link = self.table.find(target);
        let Some(link) = link.filter(|link| !link.conn.closing && !link.conn.is_killed()) else {
            return;
        };
        let before = link.conn.output.capacity();
        if !link.copy_messages(&mut self.state, run) {
            let address = &link.conn.client.peer;
            tracing::warn!(client = target.id, %address, "closed: it does not read its messages");
            self.state.tally.output_limit_closes += 1;
            return self.close(target.slot);
        }
        let grown = link.conn.output.capacity().saturating_sub(before);
        if !link.conn.fresh {
            link.conn.fresh = true;
            self.table.fresh.push(target.slot);
        }
        self.note_copied(grown);
    }

    pub(super) fn note_copied(&mut self, bytes: usize) {
        if self.state.settings.max_memory_clients == 0 {
            return;
        }
        let handle = self.state.handle();
        if self.uncounted.add(bytes, handle) && self.clients_hold_too_much() {
            self.make_room_for_copies();
        }
    }

    #[cold]
    fn make_room_for_copies(&mut self) {
        for slot in 0..self.table.fresh.len() {
            if let Some(conn) = self.table.get(self.table.fresh[slot]) {
                // A receiver that cannot be written to is closed when the rest is sent.
                let _ = conn.send_all(&mut self.state);
            }
        }
        self.send_fresh();
        if self.clients_hold_too_much() {
            self.evict_clients();
        }
    }

    /// Sends messages that were put into outputs, one write for each connection.
    pub(super) fn send_fresh(&mut self) {
        let mut fresh = std::mem::take(&mut self.table.fresh);
        if !fresh.is_empty() {
            // What a served command has caused comes before its reply.
            self.server().publish_events();
        }
        for slot in fresh.drain(..) {
            let Some(link) = self.table.get(slot) else {
                continue;
            };
            link.conn.fresh = false;
            if link.send_output(&mut self.state).is_err() {
                self.close(slot);
                continue;
            }
            self.has_sent(slot);
        }
        self.table.fresh = fresh;
        let handle = self.state.handle();
        self.uncounted.settle(handle);
    }
}
