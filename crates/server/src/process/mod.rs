//! The process: its limits, its log, and the threads beside the event loops.

pub(crate) mod log;
pub(crate) mod long_threads;
pub(crate) mod long_work;
pub(crate) mod reclaim;
pub(crate) mod system;
