//! The tier on real engines.

mod cluster;
mod outages;
mod processes;
mod sentinel;
mod server;
mod shim;
mod support;
