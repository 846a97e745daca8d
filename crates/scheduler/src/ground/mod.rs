//! All other modules stand on these: locks, panics, errors, lateness.

pub(crate) mod error;
pub(crate) mod lateness;
pub(crate) mod panics;
pub(crate) mod reentry;
pub(crate) mod sync;
