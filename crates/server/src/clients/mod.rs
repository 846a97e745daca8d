//! Clients: their registry, their connections, queued transactions, CLIENT PAUSE and MONITOR.

pub(crate) mod checks;
pub(crate) mod connection;
pub(crate) mod monitors;
pub(crate) mod pause;
pub(crate) mod queue;
pub(crate) mod registry;
pub(crate) mod tracking;
