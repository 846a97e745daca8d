//! The public interface: build a scheduler, own it, set and move tasks, read its figures, iterate.

pub(crate) mod builder;
pub(crate) mod handle;
pub(crate) mod iter;
#[cfg(feature = "metrics")]
mod metrics;
pub(crate) mod scheduler;
pub(crate) mod serial;
pub(crate) mod spawned;
pub(crate) mod stats;
#[cfg(feature = "tokio")]
pub(crate) mod stream;
pub(crate) mod when;
