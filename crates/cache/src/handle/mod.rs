//! The API: the builder, and one file for each kind of verb on a cache.
//!
//! In the order in which the documentation of `Cache` has its headings.

pub(crate) mod builder;
pub(crate) mod cache;
pub(crate) mod origins;

mod many;

mod load;

pub(crate) mod fetch;

pub(crate) mod entry;

pub(crate) mod cas;

mod ttl;

mod invalidate;

mod capacity;

pub(crate) mod iter;

mod driving;

pub(crate) mod forecast;

#[cfg(feature = "serde")]
pub(crate) mod snapshot;
