//! Sockets: accepting connections, and what is still to be sent.

pub(crate) mod listener;
pub(crate) mod output;
