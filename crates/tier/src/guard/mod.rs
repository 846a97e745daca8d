//! The guard stands between the tier and an engine that fails.

pub(crate) mod breaker;
pub(crate) mod pending;
pub(crate) mod recent;
