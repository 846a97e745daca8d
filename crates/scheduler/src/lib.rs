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
//! - [`Durable`] is a scheduler with a [`Journal`]. Its tasks are jobs: they survive a crash,
//!   run at least once, are retried as [`Retry`] says, acknowledged by an [`Ack`] if they outlive
//!   their handler, and [dead letters](DurableHandle::dead_letters) after their last attempt.
//!   `RedbJournal` (feature `redb`) is a journal in a file, [`MemoryJournal`] one in memory.
//!   [`Durable::manual`] is the same without threads, for tests of crashes.
//! - `TaskStream` (feature `tokio`) is a stream of due tasks, for one async task that owns them.
//!
//! # How it is built
//!
//! This section is for those who change the crate. The folders, from the top down:
//!
//! - `durable/`: tasks that survive a crash. `durable/redb/` is the journal in a file.
//! - `api/`: what users call.
//! - `jobs/`: how a run ends and what follows: outcome, acknowledgement, retries, dead letters.
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
//! **One job** is a task of `Durable`: it has an id in the journal, and it lives until its end is
//! written there.
//!
//! 1. *Pending.* `set` writes it to memory and to the journal, and returns when it is on disk.
//! 2. *Fired.* Its time has come, and it waits for a worker. The journal still has it.
//! 3. *Running.* The handler has a copy of its value, a token and an attempt number. If the handler
//!    takes the `Ack`, the run goes on after the handler has returned, until the `Ack` is settled
//!    or dropped.
//! 4. Then one of three. *Acked*: the end is written, and the job is gone. *Retry at t*: the job is
//!    pending again, with the next attempt number; if its key has a newer job by now, it waits
//!    *without its key*, under its id, and calls by key do not find it. *Dead*: it is a dead
//!    letter, in memory and in the journal, until it is re-queued or removed.
//!
//! A run that the end of the process cuts off has none of these. Whoever was running then is due at
//! the next start. So the first run of a job that was due at the start is written beforehand as a
//! failed attempt, and waits for the disk; its real outcome replaces that. Other runs write nothing
//! when they begin.
//!
//! A periodic job is a template. When one of its runs begins, that run becomes a job of its own,
//! under its id, and the template is filed for the next run, both in one write. So each run is
//! retried and acknowledged by itself.
//!
//! A *stripe* is one of 64 locks, chosen by the key's hash. A thread holds the stripe of a key
//! while it changes that key in memory and journal; only then can it draw an id or append. The
//! order of locks is: stripe → shard → dead letters → journal. The queue's lock is taken alone.
//! Acknowledgements are settled by the workers, so that an executor's thread that settles or drops
//! an `Ack` takes the queue's lock and no other.
//!
//! Invariants:
//!
//! - **The changes of one key reach the journal in the order in which they reached memory.**
//! - **A thread that holds a stripe never waits**, neither for room in a queue nor for the disk.
//! - **A job leaves the journal by an acknowledgement or by a call of the user, and in no other
//!   way.** If the dead letters are full, a job that would become one is retried instead.
//! - **A job is in one place**: pending, fired, running or dead. So no two runs of one job overlap.
//! - **No job runs that is not exactly as it was written.** What cannot be read is an error or is
//!   named; no value stands in for it.
//! - **Unsettled runs are bounded.** They count as running, and workers take nothing from the queue
//!   beyond the bound. While the bound is reached and an `Ack` is held, nobody waits for room in
//!   the queue: whoever waits may hold that `Ack`.
//! - **All jobs are restored before the first handler runs.**
#![forbid(unsafe_code)]

/// Compiles and runs the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod api;
mod core;
mod drive;
mod durable;
mod ground;
mod jobs;
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
pub use durable::builder::DurableBuilder;
pub use durable::handle::DurableHandle;
pub use durable::journal::{Change, Journal, Place, Record, Repeat, Status};
#[cfg(feature = "serde")]
pub use durable::json::Json;
pub use durable::look::{DurableIter, PendingJob};
pub use durable::memory::MemoryJournal;
#[cfg(feature = "redb")]
pub use durable::redb::RedbJournal;
#[cfg(feature = "redb")]
pub use durable::redb::salvage::{DamagedJob, Salvaged};
pub use durable::run::DurableRun;
pub use durable::scheduler::{Durable, DurableStopped};
pub use durable::stored::Stored;
pub use ground::error::{Error, JournalError};
pub use ground::lateness::Lateness;
pub use jobs::ack::Ack;
pub use jobs::dead::DeadLetter;
pub use jobs::outcome::{IntoOutcome, Outcome};
pub use jobs::retry::Retry;
pub use tidewheel_time::{Clock, DefaultHashBuilder, DefaultHasher, ManualClock, SystemClock};
