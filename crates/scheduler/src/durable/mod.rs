//! Durable tasks survive a crash: a scheduler, and a journal of its jobs.

pub(crate) mod builder;
mod change;
pub(crate) mod handle;
mod job;
pub(crate) mod journal;
#[cfg(feature = "serde")]
pub(crate) mod json;
mod letters;
pub(crate) mod look;
pub(crate) mod memory;
mod name;
#[cfg(feature = "serde")]
mod nulls;
mod ordered;
#[cfg(feature = "redb")]
pub(crate) mod redb;
mod restore;
mod rhythm;
pub(crate) mod run;
pub(crate) mod scheduler;
mod settle;
mod shared;
#[cfg(all(test, shuttle, feature = "shuttle"))]
mod shuttle_tests;
pub(crate) mod stored;
