//! The scheduler as its users see it: one binary, so that its generics are compiled once.

mod clocks;
mod common;
mod counts;
#[cfg(feature = "redb")]
mod damaged;
#[cfg(feature = "redb")]
mod durable;
mod durable_hostile;
mod durable_order;
mod durable_simulation;
mod gozero;
mod handle;
mod hostile;
mod jobs;
mod jobs_threads;
#[cfg(feature = "redb")]
mod killed;
mod model;
#[cfg(all(feature = "redb", feature = "serde"))]
mod redb_file;
mod spawned;
mod stranger;
#[cfg(feature = "tokio")]
mod stream;
mod stress;
mod threads;
