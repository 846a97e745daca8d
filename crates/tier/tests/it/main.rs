//! The tier on real engines.

mod cluster;
#[cfg(feature = "tls")]
mod encrypted;
mod outages;
mod processes;
mod sentinel;
mod server;
mod shim;
mod support;
