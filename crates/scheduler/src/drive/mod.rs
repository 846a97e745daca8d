//! The shell drives the core: shards under locks, the timing thread, the queue and the workers.

pub(crate) mod inner;
pub(crate) mod queue;
pub(crate) mod shards;
pub(crate) mod threads;
pub(crate) mod timing;
