//! What a loop knows of a client's socket.

use std::io::{Read, Write};

use rustls::pki_types::CertificateDer;

/// A socket that never blocks.
///
/// A `write` that does not take all that it is offered may have encrypted it already. What it has
/// not taken must be offered again, before anything else.
pub(crate) trait ByteStream: Read + Write {
    /// Returns true if nothing is left to read until the poller reports more. `filled`: the last
    /// read has filled its buffer.
    fn is_drained(&self, filled: bool) -> bool;

    /// Returns the memory that its own buffers take, in bytes.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Returns the version of TLS that it speaks; `no` if none.
    fn tls(&self) -> &'static str {
        "no"
    }

    /// Returns the certificate that the client has shown, if it has.
    fn certificate(&self) -> Option<&CertificateDer<'static>> {
        None
    }

    /// Says goodbye where the protocol has a word for it, before the socket is closed.
    fn say_goodbye(&mut self) {}
}

/// On Linux a short read has emptied a socket, and the poller will report more input.
pub(crate) fn empties_socket(filled: bool) -> bool {
    cfg!(target_os = "linux") && !filled
}
