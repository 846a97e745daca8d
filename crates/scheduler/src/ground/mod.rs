//! What all other modules stand on: locks, panics, errors, how late something was.

pub(crate) mod error;
pub(crate) mod lateness;
pub(crate) mod panics;
pub(crate) mod reentry;
pub(crate) mod sync;
