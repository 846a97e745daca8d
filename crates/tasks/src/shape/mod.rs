//! The types that workers and stores exchange.

pub(crate) mod claim;
pub(crate) mod counts;
#[cfg(feature = "cron")]
pub(crate) mod cron;
pub(crate) mod dead;
pub(crate) mod error;
pub(crate) mod finished;
pub(crate) mod look;
pub(crate) mod many;
pub(crate) mod outcome;
#[cfg(any(feature = "postgres", feature = "nats"))]
pub(crate) mod overtaken;
pub(crate) mod queue;
pub(crate) mod rate;
pub(crate) mod retry;
pub(crate) mod rhythm;
#[cfg(any(feature = "postgres", feature = "nats"))]
pub(crate) mod sum;
pub(crate) mod task;
pub(crate) mod terms;
pub(crate) mod timestamp;
pub(crate) mod waits;
