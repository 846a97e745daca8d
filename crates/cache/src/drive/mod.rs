//! Who drives: removes what is due, sweeps what was invalidated, tidies memory.

mod clear;
pub(crate) mod driver;
pub(crate) mod expiry;
#[cfg(feature = "metrics")]
mod metrics;
pub(crate) mod sweep;
#[cfg(feature = "system")]
pub(crate) mod threads;
