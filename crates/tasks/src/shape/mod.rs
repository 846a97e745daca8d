//! What workers and stores hand to each other.

pub(crate) mod claim;
pub(crate) mod dead;
pub(crate) mod error;
pub(crate) mod many;
pub(crate) mod task;
pub(crate) mod timestamp;
