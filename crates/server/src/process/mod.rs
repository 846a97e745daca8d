//! The process: its limits, its log, and the thread that frees big memory.

pub(crate) mod log;
pub(crate) mod reclaim;
pub(crate) mod system;
