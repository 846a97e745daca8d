//! The scheduler as its users see it: one binary, so that its generics are compiled once.

mod clocks;
mod common;
mod counts;
mod gozero;
mod handle;
mod hostile;
mod model;
mod spawned;
mod stranger;
#[cfg(feature = "tokio")]
mod stream;
mod stress;
mod threads;
