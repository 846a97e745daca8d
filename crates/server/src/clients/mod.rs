//! The clients: their registry, the connection of each, and what may hold its commands back.

pub(crate) mod checks;
pub(crate) mod connection;
pub(crate) mod monitors;
pub(crate) mod pause;
pub(crate) mod queue;
pub(crate) mod registry;
