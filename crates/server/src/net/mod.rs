//! Sockets: listening, accepting, streams (plain, Unix, TLS), and output that is not sent yet.

pub(crate) mod byte_stream;
pub(crate) mod listener;
pub(crate) mod output;
pub(crate) mod stream;
pub(crate) mod tls;
#[cfg(unix)]
pub(crate) mod unix_socket;
