//! Connections whose command waits for a key: how the wait ends.

use tidewheel_keyspace::{Served, Waiter};
use tidewheel_resp::Writer;

use super::parts::{LoopCore, Sockets};
use crate::clients::checks;
use crate::clients::connection::{Connection, Replies};
use crate::loop_handle::inbox::Target;

const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

impl<K: Sockets> LoopCore<K> {
    /// What a client has waited for is there.
    pub(super) fn served(&mut self, served: Served) {
        match served {
            Served::Reply(ticket, reply) => self.end_wait(target(ticket.waiter), &reply),
            Served::Retry(ticket) => {
                let mut out = Writer::new(ticket.protocol);
                let (seat, time) = (&mut self.state.seat, self.state.time);
                let keyspace = &self.state.server.keyspace;
                if keyspace.retry(seat, time, &ticket, &mut out) {
                    self.end_wait(target(ticket.waiter), out.as_bytes());
                }
            }
        }
    }

    /// CLIENT UNBLOCK has ended a wait.
    pub(super) fn unblocked(&mut self, target: Target, error: bool) {
        if let Some(conn) = self.table.find(target) {
            let mut out = Writer::new(conn.protocol);
            match error {
                true => out.error(UNBLOCKED),
                false => out.null_array(),
            }
            self.end_wait(target, out.as_bytes());
        }
    }

    /// The time of a client that waits is over.
    pub(super) fn wait_is_over(&mut self, slot: u32) {
        let Some(conn) = self.table.get(slot) else {
            return;
        };
        let (target, mut out) = (conn.client.target(), Writer::new(conn.protocol));
        // If it was served or unblocked meanwhile, the reply is on its way.
        if conn.waiting.as_mut().is_some_and(|waiting| {
            waiting.until = None;
            waiting.ticket.end()
        }) {
            out.null_array();
            self.end_wait(target, out.as_bytes());
        }
        self.table.file(slot, &self.state.settings);
    }

    /// Answers a command that has waited. Those behind it go on.
    fn end_wait(&mut self, target: Target, reply: &[u8]) {
        let Some(conn) = self.table.find(target) else {
            return;
        };
        let Some(waiting) = conn.waiting.take() else {
            return;
        };
        conn.client.waiting.lock().take();
        self.worker.notes.finish(&self.state, conn);
        self.state.tally.errors += u64::from(reply.first() == Some(&b'-'));
        conn.answer(reply);
        if !conn.fresh {
            conn.fresh = true;
            self.table.fresh.push(target.slot);
        }
        self.table.enqueue(target.slot);
        let (seat, time) = (&mut self.state.seat, self.state.time);
        let keyspace = &self.state.server.keyspace;
        keyspace.leave(seat, time, &waiting.ticket);
    }
}

impl Connection {
    /// Whether it waits for a key, and its time is over.
    pub(super) fn waits_no_longer(&self, now: u64) -> bool {
        let until = self.waiting.as_ref().and_then(|waiting| waiting.until);
        until.is_some_and(|until| until <= now)
    }

    /// Adds a reply to its output, if CLIENT REPLY wants it.
    fn answer(&mut self, reply: &[u8]) {
        self.moved.commands += 1;
        if self.checks & checks::MUTED == 0 {
            self.output.append(reply);
            return;
        }
        self.replies = match self.replies {
            Replies::SkipThisAndNext => Replies::SkipThis,
            Replies::SkipThis => Replies::On,
            kept => kept,
        };
        self.set(checks::MUTED, self.replies != Replies::On);
    }
}

fn target(waiter: Waiter) -> Target {
    Target {
        id: waiter.id,
        slot: waiter.slot,
    }
}
