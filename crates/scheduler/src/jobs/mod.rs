//! How a run of a durable job ends and what follows: outcome, acknowledgement, retries, dead
//! letters.

pub(crate) mod ack;
pub(crate) mod dead;
pub(crate) mod outcome;
pub(crate) mod retry;
