//! The event loops: the shell with its sockets, the loop within it, and the worker that serves one
//! connection.

pub(crate) mod event_loop;
pub(crate) mod loop_core;
pub(crate) mod worker;
