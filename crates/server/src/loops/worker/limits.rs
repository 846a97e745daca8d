//! Limits the length of one reply to what its client, and all clients together, may hold.
//!
//! An example of what this prevents: MGET names one large value a thousand times. That is a short
//! command, but it would build a huge reply before anything looks at a limit.
//!
//! The limit holds for each single reply. Several replies gather in the buffer, and are sent once
//! they reach [`SEND_MARK`]. So the buffer holds at most that much more than one reply.

use crate::clients::connection::Connection;
use crate::commands::turn::Turn;
use crate::config::Settings;
use crate::state::loop_state::LoopState;

/// Replies that gather before they are sent in the middle of a batch.
pub(super) const SEND_MARK: usize = 256 << 10;

impl Turn<'_> {
    /// Limits the replies to what this connection may hold.
    pub(super) fn limit_replies(&mut self, conn: &Connection) {
        let limit =
            hard_limit(conn, &self.state.settings).min(conn.shared_limit(&self.state.settings));
        let bytes = usize::try_from(limit).unwrap_or(usize::MAX);
        self.out.set_limit(bytes.saturating_add(SEND_MARK));
    }

    /// Drops a reply that is too long, and everything after it, and closes the connection.
    #[cold]
    pub(super) fn close_for_long_reply(&mut self, conn: &mut Connection) {
        self.state.note_too_long(conn);
        self.out.clear();
        self.over_limit = true;
        conn.closing = true;
    }
}

impl LoopState {
    /// Counts and logs a connection that is closed because a reply to it is too long.
    pub(crate) fn note_too_long(&mut self, conn: &Connection) {
        if hard_limit(conn, &self.settings) <= conn.shared_limit(&self.settings) {
            self.tally.output_limit_closes += 1;
        } else {
            self.tally.evicted_clients += 1;
        }
        let (client, address) = (conn.client.id, &conn.client.peer);
        tracing::warn!(client, %address, command = conn.command, "closed: its reply is too long");
    }
}

/// Returns the hard limit of the connection's output.
fn hard_limit(conn: &Connection, settings: &Settings) -> u64 {
    match conn.output_limit(settings).hard {
        0 => u64::MAX,
        hard => hard,
    }
}
