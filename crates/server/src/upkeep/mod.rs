//! Background work on shards: expiry and tidying, also for loops that are stuck.

pub(crate) mod expired;
pub(crate) mod expiry;
pub(crate) mod guard;
pub(crate) mod shards;
pub(crate) mod tidying;
