//! The tier on real engines.

mod cluster;
mod outages;
mod sentinel;
mod server;
mod support;
