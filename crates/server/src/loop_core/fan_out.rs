//! Messages: each receiver gets a copy of its own, within what it and all clients together may hold.
//!
//! A message waits once for all receivers of a loop, however many they are: it is the copies that take
//! memory. So a receiver whose limit is reached takes no more of them. And whenever the loop has copied a
//! [`PORTION`] it looks at what all clients hold: if that is too much, the copies leave as far as the
//! sockets take them, and if it is still too much, the biggest are closed. Only then copying goes on.

use std::sync::atomic::Ordering;

use super::{LoopCore, Sockets};
use crate::inbox::{Messages, Target};
use crate::loop_handle::LoopHandle;

/// So many bytes are copied between two looks at what all clients hold.
const PORTION: usize = 1 << 20;

/// Copies that are in no connection's account yet.
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// Of the running portion.
    portion: usize,
    /// Of portions before, which the loop's sum knows of.
    told: usize,
}

impl Copied {
    /// So much was copied. True when that completes a portion, which the loop's sum then knows of.
    fn add(&mut self, bytes: usize, handle: &LoopHandle) -> bool {
        self.portion += bytes;
        if self.portion < PORTION {
            return false;
        }
        let portion = std::mem::take(&mut self.portion);
        handle.client_memory.fetch_add(portion, Ordering::Relaxed);
        self.told += portion;
        true
    }

    /// Every copy is in its connection's account.
    fn settle(&mut self, handle: &LoopHandle) {
        self.portion = 0;
        let told = std::mem::take(&mut self.told);
        if told > 0 {
            handle.client_memory.fetch_sub(told, Ordering::Relaxed);
        }
    }
}

impl<K: Sockets> LoopCore<K> {
    /// Puts messages into the output of those for whom they are.
    pub(super) fn append(&mut self, run: &Messages) {
        for target in run.targets.iter() {
            self.append_to(*target, run);
        }
    }

    fn append_to(&mut self, target: Target, run: &Messages) {
        let conn = self.table.find(target);
        let Some(conn) = conn.filter(|conn| !conn.closing && !conn.is_condemned()) else {
            return;
        };
        let before = conn.output.capacity();
        if !self.worker.copy_messages(conn, run) {
            tracing::warn!(client = target.id, "closed: it does not read its messages");
            self.worker.tally.output_limit_closes += 1;
            return self.close(target.slot);
        }
        let grown = conn.output.capacity().saturating_sub(before);
        if !conn.fresh {
            conn.fresh = true;
            self.table.fresh.push(target.slot);
        }
        self.note_copied(grown);
    }

    fn note_copied(&mut self, bytes: usize) {
        if self.worker.settings.max_memory_clients == 0 {
            return;
        }
        let handle = &self.worker.server.loops[self.worker.index];
        if self.copied.add(bytes, handle) && self.clients_hold_too_much() {
            self.make_room_for_copies();
        }
    }

    #[cold]
    fn make_room_for_copies(&mut self) {
        for slot in 0..self.table.fresh.len() {
            if let Some(conn) = self.table.get(self.table.fresh[slot]) {
                // Whoever cannot be written to is closed when the rest is sent.
                let _ = self.worker.send_all(conn);
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
        for slot in fresh.drain(..) {
            let Some(conn) = self.table.get(slot) else {
                continue;
            };
            conn.fresh = false;
            if self.worker.send_output(conn).is_err() {
                self.close(slot);
                continue;
            }
            self.has_sent(slot);
        }
        self.table.fresh = fresh;
        let handle = &self.worker.server.loops[self.worker.index];
        self.copied.settle(handle);
    }
}
