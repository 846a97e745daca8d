//! The process: its limits, its log, and its threads other than the event loops.

pub(crate) mod log;
pub(crate) mod long_threads;
pub(crate) mod long_work;
pub(crate) mod reclaim;
pub(crate) mod replace;
pub(crate) mod system;
