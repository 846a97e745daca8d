//! Counters for INFO: of each loop, and of each command.

pub(crate) mod command_counts;
pub(crate) mod metrics;
