//! Counters by loop and by command, the slow log and LATENCY.

pub(crate) mod command_counts;
pub(crate) mod latency;
pub(crate) mod memory_marks;
pub(crate) mod metrics;
pub(crate) mod slow_log;
pub(crate) mod times;
pub(crate) mod tls;
