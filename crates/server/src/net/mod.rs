//! Sockets: listening, accepting, and output that is not sent yet.

pub(crate) mod listener;
pub(crate) mod output;
