//! The whole server below its sockets, in one thread and in virtual time: real parser, dispatcher,
//! keyspace, hub and outboxes over streams in memory.

mod activity;
mod client_memory;
mod half_close;
mod hand_over;
mod rig;
mod settings;
mod subscribers;
mod time;
mod wire;
