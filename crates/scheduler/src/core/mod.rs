//! The core in virtual time: tasks by key, without clocks, threads or locks.

pub(crate) mod hash;
pub(crate) mod routine;
pub(crate) mod run;
pub(crate) mod tasks;
