//! Deadlines in, what is due out: timer wheels and a heap under one trait.
//!
//! This crate knows neither keys nor clocks nor threads. The caller passes the time in, and gets
//! back the ids of the timers that are due:
//!
//! ```
//! use tidewheel_timer::{HierarchicalWheel, TimerSet};
//!
//! let mut timers = TimerSet::new(HierarchicalWheel::new(0));
//! let tea = timers.insert(180_000, 0);
//! let egg = timers.insert(300_000, 0);
//! timers.reschedule(egg, 240_000, 1_000);
//!
//! let mut due = Vec::new();
//! timers.advance(179_999, u32::MAX, |id| due.push(id));
//! assert!(due.is_empty());
//! timers.advance(240_000, u32::MAX, |id| due.push(id));
//! assert_eq!(due, [tea, egg]);
//! ```
//!
//! # The parts
//!
//! - [`TimerQueue`] is the trait of every timer structure. [`Timers`] is how a structure reaches
//!   the timers of their owner.
//! - [`HierarchicalWheel`] is the production timer: O(1), tickless, any `u64` deadline, bounded
//!   work per call.
//! - [`TimerSet`] keeps timers for programs that have no entries of their own to keep them in.
//! - [`HashedWheel`] and [`IndexedHeap`] are the two classic alternatives. They stay for
//!   comparison, and as the tests' oracle.
//!
//! # What is promised
//!
//! A timer fires in the first call of `advance` whose `now` has reached its deadline, never
//! earlier. It fires later only if that call's budget ran out, and then `backlog` says so. A late
//! call delays nothing after it, because ticks are absolute.
#![no_std]
#![forbid(unsafe_code)]

/// Compiles and runs the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bitset;
mod levels;
mod marks;
#[cfg(feature = "others")]
mod others;
mod pool;
mod queue;
mod ring;
#[cfg(feature = "set")]
mod set;
#[cfg(feature = "set")]
mod slab;
mod sweep;
mod wheel;

pub use bitset::BitSet;
pub use levels::SPLIT_PER_TICK;
#[cfg(feature = "others")]
pub use others::{HashedWheel, IndexedHeap};
pub use pool::FreedRecords;
pub use queue::{Forecast, Progress, Timer, TimerQueue, Timers, forecast_window};
#[cfg(feature = "set")]
pub use set::TimerSet;
#[cfg(feature = "set")]
pub use slab::TimerId;
pub use wheel::HierarchicalWheel;
