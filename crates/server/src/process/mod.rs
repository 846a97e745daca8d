//! The process: its limits, its log, its threads other than the event loops, and what it tells
//! systemd.

pub(crate) mod log;
pub(crate) mod long_threads;
pub(crate) mod long_work;
pub(crate) mod reclaim;
pub(crate) mod replace;
pub(crate) mod sd_notify;
mod standard_error;
pub(crate) mod system;
