//! The ground floor of Tidewheel: what time it is, and who is woken when.
//!
//! - [`Clock`] is where time comes from: [`SystemClock`], [`ManualClock`] for tests, or one of
//!   yours.
//! - [`Readings`] reads a clock from its first reading on, and never backwards. A [`Moment`] is one
//!   reading.
//! - [`Timeline`] maps clock time to engine time, so that all deadlines can be frozen, resumed or
//!   shifted at once.
//! - [`Soonest`] publishes the earliest deadline of something that is behind a lock.
//! - [`Alarm`] is the alarm of one thread or task that sleeps until a deadline. It loses no
//!   wake-up.
//! - [`Histogram`] counts how late things happened.
//! - [`DefaultHashBuilder`] hashes keys unless the user brings a hasher; [`mix()`] spreads the bits
//!   of a hash.
//!
//! `clock.rs` is the only file of all crates that reads a clock; a lint says so to everybody else.
//!
//! # The rules
//!
//! - One tick is one millisecond of *engine time*: a `u64` that runs with the monotonic clock.
//! - **A deadline is reached when `now >= deadline`, never before.** `now` is the clock rounded
//!   down, deadlines are rounded up, so nothing ends early.
//! - Freezing, resuming and shifting take constant time: they change one number of a timeline, and
//!   no deadline.
//! - **No wake-up is lost.** A thread that makes a deadline earlier stores the deadline, and then
//!   reads how long the sleeper sleeps. One that goes to sleep stores how long, and then reads the
//!   deadline. `alarm.rs` has the argument, and a test under shuttle.
//!
//! # Features
//!
//! `system`: the system's clock. `tokio`: tokio's clock. Without them nothing here reads a clock.
#![forbid(unsafe_code)]

/// Compiles and runs the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod alarm;
mod clock;
mod hasher;
mod histogram;
mod manual;
mod mix;
mod moment;
mod readings;
mod soonest;
mod sync;
mod timeline;

pub use alarm::{Alarm, waker_of};
pub use clock::Clock;
#[cfg(feature = "tokio")]
pub use clock::TokioClock;
#[cfg(feature = "system")]
pub use clock::{SystemClock, boot_nanos, monotonic_nanos, until_instant, wall_nanos};
pub use hasher::{DefaultHashBuilder, DefaultHasher};
pub use histogram::{Counts, Histogram, Quantiles, Runs};
pub use manual::ManualClock;
pub use mix::mix;
pub use moment::{Moment, TICK_NANOS, nanos, ticks};
pub use readings::Readings;
pub use soonest::{NEVER, Soonest};
pub use timeline::{Engine, Timeline};
