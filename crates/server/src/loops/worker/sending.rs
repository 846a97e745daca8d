//! Sends a connection's waiting output, and copies messages into it, within its limits.

use std::io::{self, Write};

use tidewheel_resp::Protocol;

use crate::clients::connection::Link;
use crate::loop_handle::inbox::Messages;
use crate::state::loop_state::LoopState;

impl<S: Write> Link<S> {
    /// Sends what waits in the output, but no more than one turn's share.
    pub(crate) fn send_output(&mut self, state: &mut LoopState) -> io::Result<()> {
        if !self.conn.can_send() {
            return Ok(());
        }
        let mut most = usize::MAX;
        if state.server.log.holds_replies() {
            most = self.released(state);
            if most == 0 {
                return Ok(());
            }
        }
        let (sent, full, buffer) = self.conn.output.send(&mut self.stream, most)?;
        self.conn.blocked = full;
        self.note_sent(state, sent);
        if let Some(buffer) = buffer {
            state.server.reclaimer.drop_buffer(buffer);
        }
        Ok(())
    }

    /// The number of bytes that may leave. If there are none, the connection waits for the log.
    #[cold]
    fn released(&mut self, state: &mut LoopState) -> usize {
        self.conn.output.hold(state.server.keyspace.records());
        // From here on the loop is told when more is on disk.
        state.handle().await_log();
        let released = self.conn.output.released(state.server.log.on_disk());
        if released == 0 {
            self.conn.withheld = true;
            state.withheld.push(self.conn.target());
        }
        released
    }

    /// Sends as much as the socket takes.
    pub(crate) fn send_all(&mut self, state: &mut LoopState) -> io::Result<()> {
        while self.conn.can_send() {
            self.send_output(state)?;
        }
        Ok(())
    }

    /// Returns true if the output is within its limits, if need be after asking the socket once
    /// more.
    pub(crate) fn keeps_up(&mut self, state: &mut LoopState) -> bool {
        let now = state.time.tick;
        !self.conn.exceeds_output_limit(&state.settings, now)
            || (self.send_all(state).is_ok()
                && !self.conn.exceeds_output_limit(&state.settings, now))
    }

    /// Copies messages into the output, but no more than it may hold at a time: what is more leaves
    /// before the next is copied. False when the receiver does not keep up.
    pub(crate) fn copy_messages(&mut self, state: &mut LoopState, run: &Messages) -> bool {
        let resp3 = self.conn.protocol == Protocol::Resp3;
        let most = self.conn.output_room(&state.settings);
        let Some((bytes, starts)) = run.since(self.conn.messages_seen) else {
            return true;
        };
        if self.conn.output.len().saturating_add(bytes.len()) <= most {
            self.conn.output.append_messages(bytes, starts, resp3);
            return self.keeps_up(state);
        }
        for message in run.each_since(self.conn.messages_seen) {
            let start = std::iter::once(0);
            self.conn.output.append_messages(message, start, resp3);
            let behind = self.conn.output.len() > most && self.send_all(state).is_err();
            if behind || !self.keeps_up(state) {
                return false;
            }
        }
        true
    }

    /// Bytes have left.
    pub(crate) fn note_sent(&mut self, state: &mut LoopState, sent: usize) {
        state.tally.writes += 1;
        state.tally.output_bytes += sent as u64;
        self.conn.traffic.output += sent as u64;
        if sent > 0 {
            self.conn.last_active = state.time.tick;
        }
    }
}
