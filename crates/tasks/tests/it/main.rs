//! Workers and stores as their users see them: one binary.

mod common;
mod conformance;
#[cfg(all(feature = "nats", feature = "postgres"))]
mod fleet;
mod journal;
#[cfg(feature = "embedded")]
mod killed;
mod memory;
#[cfg(all(feature = "nats", feature = "postgres", feature = "embedded"))]
mod million;
mod model;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "postgres")]
mod postgres;
mod simulation;
mod skew;
mod worker;
