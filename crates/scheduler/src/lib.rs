//! Run this later, by key: in time, never early, never twice.
//!
//! A [`Scheduler`] keeps tasks by key in a hierarchical timing wheel, and calls a handler for each
//! when its time has come. It is made for millions of tasks. Setting, moving and removing a task
//! costs O(1), and moving it takes no memory. So it suits deadlines that hardly ever come, such as
//! time-outs that every heartbeat moves later.
//!
//! ```
//! use std::time::Duration;
//! use tidewheel_scheduler::{CatchUp, Scheduler};
//!
//! let scheduler = Scheduler::<u64, &str>::builder()
//!     .workers(4)
//!     .start(|scheduler, run| {
//!         println!("{} of {} is silent, {:?} late", run.value, run.key, run.late);
//!         // A handler may call the scheduler, its own key included: that is a new task.
//!         let _ = scheduler.set(run.key, run.value, Duration::from_secs(60));
//!     })?;
//!
//! scheduler.set(17, "connection", Duration::from_secs(30))?;
//! // A heartbeat.
//! assert!(scheduler.move_to(&17, Duration::from_secs(30)));
//! assert!(scheduler.get(&17).is_some());
//! scheduler.set_periodic(
//!     1,
//!     "report",
//!     Duration::ZERO,
//!     Duration::from_secs(10),
//!     CatchUp::Skip,
//! )?;
//! let stopped = scheduler.stop(Duration::from_secs(1));
//! assert!(!stopped.pending.is_empty());
//! # Ok::<(), tidewheel_scheduler::Error>(())
//! ```
//!
//! # What is promised
//!
//! - **Never early.** Deadlines are rounded up to a millisecond, the clock is read rounded down.
//! - **Never twice.** A task is in exactly one place. It is pending, under its shard's lock, or it
//!   was fired and belongs to the handler. Every call takes effect at one instant, under that lock:
//!   - after [`remove`](Handle::remove) returned `Some`, no run of that task begins (one of a
//!     periodic task may be going on);
//!   - after [`move_to`](Handle::move_to) returned `true`, it runs once, at the new time;
//!   - a [`set`](Handle::set) on a pending key replaces value and time, and it stays one task;
//!   - a `set` during the key's own handler is a new task, although the key is the same.
//! - **Tasks have no priorities**: they run as they become due. What must not wait
//!   behind other tasks gets a scheduler with workers of its own.
//! - **A slow handler delays nobody** while a worker is free, and a panicking one is counted. Tasks
//!   of one instant run at the same time, as far as there are workers.
//! - **A panic of user code costs its own run**, whether in a handler, in the `Clone` of a periodic
//!   task, in the `Drop` of a dropped one or in a clock; timing goes on.
//! - **Nobody waits for itself.** Handlers, and the drops of keys and values, may call the
//!   scheduler. Code that runs under a lock (`Hash`, `Eq`, `Clone`, the closures of
//!   [`peek`](Handle::peek) and [`move_or_set`](Handle::move_or_set)) may call another scheduler;
//!   if it calls its own, it panics.
//! - **Nothing is lost silently.** When tasks become due faster than handlers take them,
//!   [`BackPressure`] says what happens, and [`stats`](Handle::stats) counts it.
//! - **A late wake-up delays nothing after it**: ticks are absolute, however long the process
//!   slept.
//!
//! # The parts
//!
//! - [`Tasks`] is the core in virtual time: `advance(now, budget, sink)`, no threads, clocks or
//!   locks.
//! - [`Scheduler`] is threads over shards of it. [`Builder::start_async`] takes async handlers;
//!   [`Builder::manual`] is the same without threads.
//! - `TaskStream` (feature `tokio`) is a stream of due tasks, for one async task that owns them.
//!
//! # After `fork`
//!
//! A child that was made by `fork` without an `exec` must not use a scheduler: it has none of the
//! threads, and locks that they held at that moment stay held. Nor may it drop its parent's, which
//! waits for them: leave it by `_exit`.
//!
//! # How it is built
//!
//! This section is for those who change the crate. The folders, from the top down:
//!
//! - `api/`: what users call.
//! - `drive/`: what drives the core: shards under locks, the timing thread, the queue, the workers.
//! - `core/`: tasks by key in virtual time, without clock, thread or lock.
//! - `ground/`: locks, panics, errors, lateness.
//!
//! **One task.** `Handle::set` locks the key's shard, puts the task into it, and publishes the
//! shard's next deadline. When that has come, the timing thread takes the task out of its shard and
//! puts it into the queue. While the queue is full, due tasks stay in their shards. Fired runs of a
//! periodic task share a flag with it: `remove` raises the flag, and a worker does not begin a run
//! whose flag is raised. Lateness is counted from the deadline to the moment at which a worker
//! takes the task.
//!
//! The order of locks: shard, and the queue's lock alone.
#![forbid(unsafe_code)]

/// Compiles and runs the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod api;
mod core;
mod drive;
mod ground;
#[cfg(all(test, shuttle, feature = "shuttle"))]
mod shuttle_tests;

pub use api::builder::Builder;
pub use api::handle::Handle;
pub use api::iter::Iter;
pub use api::scheduler::{Progress, Scheduler, Stopped};
pub use api::serial::Serial;
pub use api::spawned::JobFuture;
pub use api::stats::{Stats, Window};
#[cfg(feature = "tokio")]
pub use api::stream::TaskStream;
pub use api::when::PointInTime;
pub use core::routine::CatchUp;
pub use core::run::Run;
pub use core::tasks::{Due, Step, Tasks};
pub use drive::queue::BackPressure;
pub use ground::error::Error;
pub use ground::lateness::Lateness;
pub use tidewheel_time::{Clock, DefaultHashBuilder, DefaultHasher, ManualClock, SystemClock};
