//! Background work on shards: expiry, tidying, snapshots and forgetting what is tracked; the first
//! also for loops that are stuck.

pub(crate) mod expired;
pub(crate) mod expiry;
pub(crate) mod forgetting;
pub(crate) mod guard;
pub(crate) mod shards;
pub(crate) mod snapshot;
pub(crate) mod tidying;
