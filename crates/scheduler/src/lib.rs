//! Run this later, by key.
#![forbid(unsafe_code)]

mod hash;
mod routine;
mod tasks;

pub use routine::CatchUp;
pub use tasks::{Due, Tasks};
pub use tidewheel_store::{Forecast, Progress};
