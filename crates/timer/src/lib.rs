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
//!
//! # How it is built
//!
//! A queue owns *records*: those of the wheel are a timer's id, in the slot of a tick. The timers
//! themselves belong to an owner, and a queue reaches them through the trait [`Timers`]. The store
//! is such an owner: its entries hold their timers. [`TimerSet`] is a slab of timers for programs
//! without such entries.
//!
//! - `wheel.rs` has the picture of the wheel, its rule, and the life of a record. `levels.rs` and
//!   `ring.rs` keep the records around the position, `pool.rs` gives them memory: chunks of 30
//!   records in two cache lines, in pages that go back.
//! - `sweep.rs` drops dead records a few chunks at a time; `marks.rs` knows which ids a pass has
//!   met.
//! - `set.rs` and `slab/` are the timers of owners without entries: 9 bytes each, and a name is
//!   never given twice.
//!
//! An example: a timer is due at tick 5,000, and its record is filed for tick 5,000.
//!
//! - *It is moved to 9,000.* Only the deadline changes, which is one store to the owner's cache
//!   line. When the wheel meets the record, it finds the later deadline and files the record again,
//!   for 9,000.
//! - *It is moved to 2,000.* A second record is filed, for 2,000, and the owner's *registration*
//!   now says 2,000. The first record is in a slot without that tick, so the wheel will know that
//!   it is dead.
//! - *It is cancelled.* The wheel does nothing. Its record is dead too.
//!
//! **Invariant: nothing fires early.** A record is due when its timer's deadline is at or before
//! the wheel's position, and the position never passes `now`.
//!
//! **Invariant: the position never passes an occupied slot.** So the wheel meets every record at
//! the start of its slot at the latest, even if nobody called it for a long time.
//!
//! **Invariant: a roll-over is flat.** The ring of a level spans two slots of the level above. So
//! the records of the coming slot can be split into the level below before that slot starts, 256 a
//! tick. `crates/timer/tests/it/traps/` has the test: a million entries with one TTL take 2 ticks.
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
pub use queue::{BATCH_MAX, Forecast, Progress, Span, Timer, TimerQueue, Timers, forecast_window};
#[cfg(feature = "set")]
pub use set::TimerSet;
#[cfg(feature = "set")]
pub use slab::TimerId;
pub use wheel::{FreedRecords, HierarchicalWheel};
