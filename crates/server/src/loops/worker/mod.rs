//! Serves one connection: reads its input, runs the whole commands, sends the replies.
//!
//! 1. Input is read into one buffer of the loop, and parsed there. A command that is not whole yet
//!    moves to a buffer of its connection.
//! 2. Replies gather in one buffer of the loop, and leave with one write. What the socket does not
//!    take moves to the connection.
//!
//! So an idle connection holds no buffers at all. The loop's buffers are lent for a turn: see
//! [`Buffers`].
//!
//! A turn ends when nothing is left to do, when it has read its share, or after a millisecond. What
//! is left waits in the connection, which is served again after the others and after expiry.

mod buffers;
mod input;
mod limits;
mod prefetch;
mod run;
mod sending;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use self::buffers::{Buffers, Input};
pub(crate) use self::run::ADOPT_MIN;
use crate::clients::connection::Link;
use crate::commands::turn::{CommandNotes, Others, Turn};
use crate::net::byte_stream::ByteStream;
use crate::state::loop_state::LoopState;

/// Input that one connection may have processed before the others get their turn.
const TURN_INPUT: usize = 256 << 10;

/// The next action for a connection that was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextAction {
    /// Nothing, until something arrives or leaves.
    Rest,
    /// The connection is served again after the others.
    Again,
    /// The connection is closed.
    Close,
}

/// Serves a loop's connections, one at a time.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    buffers: Buffers,
    pub(crate) notes: CommandNotes,
}

impl Worker {
    /// Does for a connection what can be done now, within its turn's share.
    ///
    /// If a command panics, by a mistake of ours, only its connection suffers. It is closed without
    /// an answer, because nobody knows how far the command came.
    pub(crate) fn serve<S: ByteStream>(
        &mut self,
        state: &mut LoopState,
        link: &mut Link<S>,
        others: &mut dyn Others,
    ) -> NextAction {
        let served = catch_unwind(AssertUnwindSafe(|| {
            let mut lent = self.buffers.lend(link.conn.protocol);
            let (out, input) = lent.parts();
            Turn::new(state, &mut self.notes, others, out).work(link, input)
        }));
        let next = match served {
            Ok(Ok(fate)) => fate,
            Ok(Err(why)) => {
                let (client, address) = (link.conn.client.id, &link.conn.client.peer);
                tracing::debug!(client, %address, %why, "connection lost");
                NextAction::Close
            }
            Err(_) => {
                // It may have had the whole keyspace, or been a long script.
                state.seat.give_back();
                state.seat.moves();
                state.server.keyspace.forgo_record();
                state.beside_script = false;
                let (client, address) = (link.conn.client.id, &link.conn.client.peer);
                tracing::error!(client, %address, "closed: its command panicked");
                NextAction::Close
            }
        };
        if next != NextAction::Close {
            link.conn.stream_holds(link.stream.held_bytes());
            link.conn.account(&state.handle().client_memory);
        }
        next
    }
}

impl Turn<'_> {
    fn work<S: ByteStream>(
        mut self,
        link: &mut Link<S>,
        input: &mut Input,
    ) -> io::Result<NextAction> {
        let mut left = TURN_INPUT;
        let mut again = false;
        while link.conn.has_work() {
            if left == 0 || self.is_spent() || self.blocked {
                again = true;
                break;
            }
            if let Some(walk) = link.conn.walk.take() {
                self.continue_walk(link, walk)?;
                continue;
            }
            let took = match link.conn.pending.take() {
                pending if link.conn.reads_ahead() => self.read_ahead(link, pending)?,
                Some(pending) if pending.wanted == 0 => self.run_pending(link, input, pending),
                Some(pending) => self.read_more(link, input, pending)?,
                None => self.read_fresh(link, input)?,
            };
            left = left.saturating_sub(took.max(1));
        }
        self.finish(link, again)
    }

    /// Sends the replies and decides what to do with the connection. `again`: it has more to do.
    fn finish<S: ByteStream>(&mut self, link: &mut Link<S>, again: bool) -> io::Result<NextAction> {
        if self.over_limit {
            return Ok(NextAction::Close);
        }
        if !self.out.is_empty() {
            link.conn.announce(self.out.len());
        }
        self.send(link)?;
        self.state.renew_time();
        // The peer has closed its side, and what it had sent before is done. The rest is a command
        // that will never be whole.
        if link.conn.ended && !link.conn.has_runnable() && link.conn.waiting.is_none() {
            link.conn.closing = true;
        }
        if (link.conn.ended || link.conn.ending) && link.conn.leaves_while_waiting() {
            return Ok(NextAction::Close);
        }
        if link.conn.closing && link.conn.output.is_empty() {
            return Ok(NextAction::Close);
        }
        if link
            .conn
            .exceeds_output_limit(&self.state.settings, self.state.time.tick)
        {
            self.state.tally.output_limit_closes += 1;
            tracing::warn!(
                client = link.conn.client.id,
                address = %link.conn.client.peer,
                "closed: it does not read its replies"
            );
            return Ok(NextAction::Close);
        }
        let again = again || link.conn.can_send();
        Ok(if again {
            NextAction::Again
        } else {
            NextAction::Rest
        })
    }
}
