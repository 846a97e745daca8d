//! Real servers for tests: started on free loopback ports, killed, paused, joined, and ended with
//! the process that started them.
//!
//! ```no_run
//! use tidewheel_engines::{Engine, Server};
//!
//! let Some(engine) = Engine::valkey() else { return };
//! let mut server = Server::start(&engine, &[]);
//! assert_eq!(server.client().text(&["PING"]), "PONG");
//! server.process.kill();
//! server.process.restart();
//! ```
//!
//! A program that is not installed is said so on standard output, and the test returns. With
//! `TIDEWHEEL_REQUIRE_TOOLS=1` in the environment it fails instead.
//!
//! Every wait has a bound, and panics with what it waited for. A server is killed when its
//! [`Process`] is dropped, and by the kernel when the test's own process dies.
//!
//! `process.rs` knows processes: killed, paused, started again, gone with their owner.
//! `binaries.rs` finds programs on the path and in Python's packages. A file for each kind of
//! engine says how one is started and when it is ready. Servers have folders of their own.

#![forbid(unsafe_code)]

mod binaries;
mod client;
mod cluster;
mod folder;
mod nats;
mod ports;
mod postgres;
mod process;
mod sentinel;
mod valkey;
mod wait;

pub use binaries::{found, require, site_packages};
pub use client::Client;
pub use cluster::Cluster;
pub use folder::Folder;
pub use nats::Nats;
pub use ports::{free_port, free_ports};
pub use postgres::Postgres;
pub use process::{Launch, Process};
pub use sentinel::Sentinels;
pub use valkey::{Engine, Server};
pub use wait::{PATIENCE, eventually, since, within};
