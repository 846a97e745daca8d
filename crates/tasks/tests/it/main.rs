//! Workers and stores as their users see them: one binary.

mod acks;
mod common;
mod conformance;
#[cfg(feature = "file")]
mod damaged;
#[cfg(feature = "file")]
mod disk;
#[cfg(feature = "file")]
mod file;
#[cfg(feature = "file")]
mod file_crashes;
#[cfg(all(feature = "nats", feature = "postgres"))]
mod fleet;
mod jobs;
#[cfg(feature = "file")]
mod killed;
mod memory;
#[cfg(all(feature = "nats", feature = "postgres", feature = "file"))]
mod million;
mod model;
#[cfg(feature = "nats")]
mod nats;
mod parents;
#[cfg(feature = "file")]
mod poison;
#[cfg(feature = "postgres")]
mod postgres;
mod simulation;
mod skew;
mod worker;
