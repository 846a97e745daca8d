//! What users call: build a scheduler, own it, set and move tasks, read its figures.

pub(crate) mod builder;
pub(crate) mod handle;
pub(crate) mod scheduler;
pub(crate) mod stats;
#[cfg(feature = "tokio")]
pub(crate) mod stream;
