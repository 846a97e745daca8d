//! The tier on real engines.

mod cluster;
mod embedded;
#[cfg(feature = "tls")]
mod encrypted;
mod failover;
mod half_moved;
mod outages;
mod processes;
mod replica;
mod sentinel;
mod server;
mod shim;
mod support;
mod waiting;
