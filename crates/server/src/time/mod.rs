//! Engine time: the clock, and a sleep that ends on time.

mod boot;
pub(crate) mod clock;
pub(crate) mod sleep_timer;
