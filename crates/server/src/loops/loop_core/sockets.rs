//! The interface of a loop to the shell that owns its sockets.

use std::io;

use crate::clients::connection::Connection;
use crate::config::Settings;
use crate::net::byte_stream::ByteStream;
use crate::net::listener::Accepted;
use crate::state::loop_state::LoopState;

/// The loop's interface to the shell that owns its sockets.
pub(crate) trait Sockets {
    /// A socket that never blocks.
    type Stream: ByteStream;

    /// Starts to report the socket's changes under `slot`.
    fn register(&self, stream: &mut Self::Stream, slot: u32, settings: &Settings)
    -> io::Result<()>;

    /// Ends the reports.
    fn deregister(&self, stream: &mut Self::Stream);

    /// Returns the number that CLIENT LIST shows.
    fn descriptor(&self, stream: &Self::Stream) -> i64;
}

/// What a loop asks of its shell while a script of it runs for long.
pub(crate) trait Shell<S> {
    /// Looks at the sockets without waiting. Tells each that has changed.
    fn look(&mut self, note: &mut dyn FnMut(u32, Readiness));

    /// Adds the new connections of this loop.
    fn accept(&mut self, state: &mut LoopState, accepted: &mut Vec<Accepted<S>>);
}

/// The changes of a socket since the last report.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Readiness {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer sends no more.
    pub(crate) read_closed: bool,
    /// The socket is broken in both directions.
    pub(crate) broken: bool,
}

impl Readiness {
    /// Adds later changes.
    pub(super) fn add(&mut self, later: Self) {
        self.readable |= later.readable;
        self.writable |= later.writable;
        self.read_closed |= later.read_closed;
        self.broken |= later.broken;
    }

    /// Notes the changes at the socket's connection.
    pub(super) fn note(self, conn: &mut Connection) {
        conn.readable |= self.readable;
        conn.ending |= self.read_closed;
        conn.blocked &= !self.writable;
    }
}
