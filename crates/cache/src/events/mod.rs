//! Events on their way to the listener: who delivers them, in which order, and who may wait.

pub(crate) mod delivery;
pub(crate) mod reentrancy;
pub(crate) mod waiting;
