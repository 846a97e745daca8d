//! Tasks that survive a crash: a scheduler, and a journal of what is pending.

pub(crate) mod handle;
pub(crate) mod journal;
mod ordered;
#[cfg(feature = "redb")]
pub(crate) mod redb;
mod restore;
pub(crate) mod run;
pub(crate) mod scheduler;
#[cfg(all(test, shuttle, feature = "shuttle"))]
mod shuttle_tests;
