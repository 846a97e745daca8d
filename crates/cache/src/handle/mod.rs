//! What users call: a cache is built, and every verb on it has a file.

pub(crate) mod builder;
pub(crate) mod cache;
mod capacity;
pub(crate) mod cas;
mod driving;
pub(crate) mod entry;
pub(crate) mod forecast;
mod invalidate;
pub(crate) mod iter;
mod load;
mod load_async;
#[cfg(feature = "metrics")]
mod metrics;
mod owner;
mod pin;
#[cfg(feature = "serde")]
pub(crate) mod snapshot;
pub(crate) mod tagged;
mod ttl;
