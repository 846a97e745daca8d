//! TLS: the terms on which it is spoken, made of certificates and settings, and a stream.
//!
//! A stream is made by a thread for handshakes (`loops/handshakes/`), which hands it to a loop when
//! the handshake is over. `caller.rs` has the other side's terms, for tools.

pub(crate) mod caller;
pub(crate) mod certificate;
pub(crate) mod stream;
pub(crate) mod terms;
