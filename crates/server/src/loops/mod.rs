//! The event loops: a shell over sockets, the loop within it, and serving one of its connections.

pub(crate) mod event_loop;
pub(crate) mod loop_core;
pub(crate) mod worker;
