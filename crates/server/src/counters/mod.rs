//! Counters for INFO: of each loop, and of each command.

pub(crate) mod command_counts;
pub(crate) mod latency;
pub(crate) mod metrics;
pub(crate) mod slow_log;
pub(crate) mod times;
