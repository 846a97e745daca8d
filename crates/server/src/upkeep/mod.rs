//! Background work on shards: expiry, tidying and forgetting what is tracked, also for loops that
//! are stuck.

pub(crate) mod expired;
pub(crate) mod expiry;
pub(crate) mod forgetting;
pub(crate) mod guard;
pub(crate) mod shards;
pub(crate) mod tidying;
