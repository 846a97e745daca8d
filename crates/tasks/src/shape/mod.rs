//! The types that workers and stores exchange.

pub(crate) mod claim;
pub(crate) mod dead;
pub(crate) mod error;
pub(crate) mod many;
#[cfg(any(feature = "postgres", feature = "nats"))]
pub(crate) mod sum;
pub(crate) mod task;
pub(crate) mod timestamp;
