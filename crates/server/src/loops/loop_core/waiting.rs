//! Ends the wait of connections whose command waits for a key.

use tidewheel_keyspace::{Command, Served, Waiter};
use tidewheel_resp::Writer;

use super::parts::LoopCore;
use super::sockets::Sockets;
use super::table::Answer;
use crate::clients::checks;
use crate::clients::connection::{Connection, Replies};
use crate::commands::turn::CommandNotes;
use crate::loop_handle::inbox::{Invalidations, Target, Unblocking, encode_keys};
use crate::loops::worker::ADOPT_MIN;
use crate::state::loop_state::LoopState;

/// Parked clients that go on in one turn.
const GOING_ON: usize = 64;
/// Answers that are given in one turn.
pub(super) const ANSWERS: usize = 64;
/// Bytes of invalidations that may stand behind answers.
pub(crate) const INVALID_MAX: usize = 1 << 20;

/// The end of a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitEnd {
    /// The command has run, for so many nanoseconds.
    Ran(u64),
    /// The time was over before an element came.
    Nothing,
    /// CLIENT UNBLOCK has ended the wait with an error.
    Refused,
    /// Its user may not run the command any more.
    Denied,
}

impl<K: Sockets> LoopCore<K> {
    /// Answers clients whose keys have come, at most so many: one entry of a stream may serve
    /// thousands, and others have their turn between them. Tells what is invalid on the way.
    pub(super) fn answer(&mut self, most: usize) {
        let mut left = most;
        while let Some(answer) = self.table.answers.pop_front() {
            match answer {
                Answer::Invalid(invalid) => {
                    self.table.invalid_bytes -= invalid.bytes();
                    self.invalidate(&invalid);
                }
                Answer::Served(served) if left == 0 => {
                    return self.table.answers.push_front(Answer::Served(served));
                }
                Answer::Served(served) => {
                    left -= 1;
                    self.served(*served);
                }
            }
        }
    }

    /// Takes what is invalid: it stands behind the answers that wait, or is told at once. If very
    /// much stands there, all of it is told now, rather than more kept.
    pub(super) fn hear_invalid(&mut self, invalid: Invalidations) {
        if self.table.invalid_bytes > INVALID_MAX {
            self.answer(usize::MAX);
        }
        if self.table.answers.is_empty() {
            return self.invalidate(&invalid);
        }
        self.table.invalid_bytes += invalid.bytes();
        self.table.answers.push_back(Answer::Invalid(invalid));
    }

    /// Serves a client whose key has come.
    fn served(&mut self, served: Served) {
        match served {
            Served::Reply { ticket, reply, ns } => {
                self.end_wait(target(ticket.waiter), reply, WaitEnd::Ran(ns));
            }
            Served::Retry(ticket) => {
                let mut out = ticket.writer();
                let (seat, time) = (&mut self.state.seat, self.state.time);
                let keyspace = &self.state.server.keyspace;
                if let Some(ns) = keyspace.retry(seat, time, &ticket, &mut out) {
                    self.end_wait(target(ticket.waiter), out, WaitEnd::Ran(ns));
                }
            }
        }
    }

    /// Lets clients go on whose commands waited for shards that are free now. Thousands go on in
    /// portions, so that others have their turn between them.
    pub(super) fn go_on(&mut self) {
        let portion = self.table.going_on.len().min(GOING_ON);
        for target in self.table.going_on.drain(..portion).collect::<Vec<_>>() {
            if let Some(link) = self.table.find(target) {
                link.conn.resumed = link.conn.parked.take();
                self.table.enqueue(target.slot);
            }
        }
    }

    /// Returns how many answers wait, and the bytes of what is invalid behind them.
    #[cfg(test)]
    pub(crate) fn answers_left(&self) -> (usize, usize) {
        let answers = self.table.answers.iter();
        let served = answers.filter(|answer| matches!(answer, Answer::Served(_)));
        (served.count(), self.table.invalid_bytes)
    }

    /// Returns true if CLIENT REPLY suppresses a client's replies.
    #[cfg(test)]
    pub(crate) fn is_muted(&mut self, target: Target) -> bool {
        let link = self.table.find(target);
        link.is_some_and(|link| link.conn.checks & checks::MUTED != 0)
    }

    /// Answers a wait that somebody has ended.
    pub(super) fn unblocked(&mut self, target: Target, how: &Unblocking) {
        if let Some(link) = self.table.find(target) {
            let mut out = Writer::new(link.conn.protocol);
            let end = match how {
                Unblocking::TimeOut => {
                    out.null_array();
                    WaitEnd::Nothing
                }
                Unblocking::Error(why) => {
                    out.error(why);
                    WaitEnd::Refused
                }
                Unblocking::Denied(why) => {
                    out.error(why);
                    WaitEnd::Denied
                }
            };
            self.end_wait(target, out, end);
        }
    }

    /// Ends a wait whose time is over.
    pub(super) fn wait_is_over(&mut self, slot: u32) {
        let Some(link) = self.table.get(slot) else {
            return;
        };
        let Some(waiting) = &mut link.conn.waiting else {
            return;
        };
        waiting.until = None;
        let (keyspace, seat) = (&self.state.server.keyspace, &mut self.state.seat);
        if keyspace.holds_back(seat, &waiting.ticket) {
            waiting.held = true;
            self.table.held.push(slot);
        } else if waiting.ticket.end() {
            let (target, mut out) = (link.conn.client.target(), Writer::new(link.conn.protocol));
            out.null_array();
            self.end_wait(target, out, WaitEnd::Nothing);
        }
        // If it was served or unblocked meanwhile, the reply is on its way.
        self.table.file(slot, &self.state.settings);
    }

    /// Answers a command that has waited. Those behind it go on.
    fn end_wait(&mut self, target: Target, reply: Writer, end: WaitEnd) {
        let Some(link) = self.table.find(target) else {
            return;
        };
        let Some(waiting) = link.conn.waiting.take() else {
            return;
        };
        link.conn.client.waiting.lock().take();
        let (seat, time) = (&mut self.state.seat, self.state.time);
        let keyspace = &self.state.server.keyspace;
        keyspace.leave(seat, time, &waiting.ticket);
        if reply.is_over() {
            self.state.note_too_long(&link.conn);
            return self.close(target.slot);
        }
        self.worker.notes.waited(
            &mut self.state,
            &mut link.conn,
            waiting.row,
            reply.as_bytes(),
            end,
        );
        link.conn.events_follow = link.conn.subscriptions.is_some();
        if let Some(unwanted) = link.conn.answer(reply) {
            self.state.server.reclaimer.drop_buffer(unwanted);
        }
        if link.conn.ended && !link.conn.has_runnable() {
            // The end of its input was met while it waited.
            link.conn.closing = true;
        }
        if link
            .conn
            .exceeds_output_limit(&self.state.settings, self.state.time.tick)
        {
            self.state.tally.output_limit_closes += 1;
            return self.close(target.slot);
        }
        if !link.conn.fresh {
            link.conn.fresh = true;
            self.table.fresh.push(target.slot);
        }
        self.table.enqueue(target.slot);
        self.table.file(target.slot, &self.state.settings);
        let keys: Vec<&[u8]> = waiting.ticket.untracked_keys().collect();
        if !keys.is_empty() {
            self.invalidate_for(target, &encode_keys(Some(&keys)));
        }
    }
}

impl CommandNotes {
    /// Counts a command that has waited.
    fn waited(
        &mut self,
        state: &mut LoopState,
        conn: &mut Connection,
        row: &'static Command,
        reply: &[u8],
        end: WaitEnd,
    ) {
        if end == WaitEnd::Denied {
            // It has not run, as one that is denied at once.
            conn.unfinished = None;
        } else {
            state.tally.commands += 1;
            conn.traffic.commands += 1;
            self.counts.add_one(row, &state.handle().command_counts);
            if let (WaitEnd::Ran(ns), Some(unfinished)) = (end, &mut conn.unfinished) {
                unfinished.ns = unfinished.ns.saturating_add(ns);
            }
            self.finish(state, conn);
        }
        if reply.first() == Some(&b'-') {
            state.tally.errors += 1;
            let shared = &state.handle().command_counts;
            let ran = !matches!(end, WaitEnd::Refused | WaitEnd::Denied);
            self.counts.failed(Some(row), ran, reply, shared);
        }
    }
}

impl Connection {
    /// Returns true if it waits for a key, and its time is over.
    pub(super) fn waits_no_longer(&self, now: u64) -> bool {
        let until = self.waiting.as_ref().and_then(|waiting| waiting.until);
        until.is_some_and(|until| until <= now)
    }

    /// Adds a reply to its output, if CLIENT REPLY wants it. Returns what is not needed any more.
    fn answer(&mut self, reply: Writer) -> Option<Vec<u8>> {
        let reply = reply.into_vec();
        if self.checks & checks::MUTED == 0 {
            if self.output.is_empty() && reply.len() > ADOPT_MIN {
                self.output.adopt(reply, 0);
                return None;
            }
            self.output.append(&reply);
            return Some(reply);
        }
        self.replies = match self.replies {
            Replies::SkipThisAndNext => Replies::SkipThis,
            Replies::SkipThis => Replies::On,
            kept => kept,
        };
        self.set(checks::MUTED, self.replies != Replies::On);
        Some(reply)
    }
}

fn target(waiter: Waiter) -> Target {
    Target {
        id: waiter.id,
        slot: waiter.slot,
    }
}
