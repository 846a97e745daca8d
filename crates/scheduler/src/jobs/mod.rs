//! A run of a durable job ends with an outcome; acknowledgements, retries and dead letters follow.

pub(crate) mod ack;
pub(crate) mod dead;
pub(crate) mod outcome;
pub(crate) mod retry;
