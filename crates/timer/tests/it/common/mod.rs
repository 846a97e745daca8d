//! The model suite's parts: what is tested, what is done to it, what must hold after every step.

#[macro_use]
mod every_queue;
pub(crate) mod lane;
pub(crate) mod ops;
pub(crate) mod run;
pub(crate) mod subject;
pub(crate) mod twins;
