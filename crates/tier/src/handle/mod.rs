//! The public interface of the tier.

pub(crate) mod block;
pub(crate) mod builder;
pub(crate) mod cache;
pub(crate) mod held;
pub(crate) mod life;
mod load;
mod load_async;
#[cfg(feature = "metrics")]
mod metrics;
mod write;
