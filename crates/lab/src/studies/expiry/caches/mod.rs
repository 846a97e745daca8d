//! Caches that are written here for comparison, and their thread.

pub(crate) mod keyed;
pub(crate) mod naive_scan;
pub(crate) mod slot_wheel;
pub(crate) mod strategy_cache;
pub(crate) mod ticker;
