//! The event loops: the shell with its sockets, the loop within it, and the worker that serves one
//! connection. Handshakes of TLS have threads of their own.

mod assign;
pub(crate) mod event_loop;
pub(crate) mod handshakes;
pub(crate) mod loop_core;
pub(crate) mod worker;
