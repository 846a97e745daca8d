//! Durable tasks, on one machine or many: a coarse engine keeps them, a fine wheel runs them.
//!
//! An engine ([`TaskStore`]: a file for one machine, Postgres, NATS JetStream) keeps the tasks.
//! Each [`Worker`] *claims* those that become due within the next seconds, holds them in a local
//! timing wheel, and runs each at its millisecond. It tells the engine afterwards. So an engine
//! that fails over for a few seconds delays nothing.
//!
//! ```
//! use std::sync::{Arc, mpsc};
//! use std::time::Duration;
//! use tidewheel_tasks::{MemoryStore, Task, TaskStore, Worker};
//!
//! let store = Arc::new(MemoryStore::new());
//! let (ran, runs) = mpsc::channel();
//! let worker = Worker::builder(Arc::clone(&store)).start(move |run| {
//!     let _ = ran.send(run.id().to_owned());
//! })?;
//! let task = Task::new("mail-7", "to: you").after(Duration::from_millis(20));
//! tidewheel_tasks::wait(store.schedule(task))?;
//! assert_eq!(runs.recv().as_deref(), Ok("mail-7"));
//! worker.stop(Duration::from_secs(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Jobs`] has keys and values of a program's own types, over any store.
//!
//! # What is promised
//!
//! - **Never early**, by the engine's clock. A worker's wall clock decides nothing.
//! - **At least once.** A task ends when its handler has succeeded and the engine knows. A claim is
//!   a *lease*: when its worker dies, the lease ends and another worker claims the task.
//! - **Fenced.** Each claim has a [`Fence`]: a number greater than those of all earlier claims of
//!   the same id. An engine refuses the end of a run whose fence is no longer the latest. Handlers
//!   can pass it on.
//! - **Retried** with back-off and jitter as [`Retry`] says; after the last attempt a task is a
//!   [dead letter](DeadLetter). A run ends when its handler does, or when its [`Ack`] says so. One
//!   that ends its process each time becomes a dead letter, too.
//! - **Periodic tasks survive**: the next run is filed in the same step in which the engine learns
//!   of the end of this one. They run each period, or at the times of a `Cron` expression in a time
//!   zone.
//! - **Queues**: a worker claims from those that it was told of, or from all. One can be
//!   [paused](TaskStore::pause), or [limited](TaskStore::limit) to so many runs in each period.
//! - **Unique for a while**, if that is wanted: a second task of the same id is
//!   [refused](Task::unique_for).
//! - **Long runs** learn that they were [cancelled](Run::cancelled), tell their
//!   [progress](Run::progress), and leave a [result](Run::keep): [`TaskStore::look`] reads it.
//! - **Parents** [wait](TaskStore::batch) until their children have ended.
//! - **Bounded**: a worker holds so many claims and no more. Of the tasks that could be claimed,
//!   those with a high [`Priority`] come first.
//!
//! # How it is built
//!
//! This section is for those who change the crate. From the top down:
//!
//! - `typed/`: keys and values of a program's own types, over a store.
//! - `worker/`: the engine loop, the claims that are held, what happens when the wheel fires.
//! - `postgres/`, `nats/`: stores on engines, behind features.
//! - `memory.rs`, `file/`: stores over the table, without a disk and with a journal in a file;
//!   `steps.rs` has the calls of both. `table/` is tasks of one process in an engine's time.
//! - `engine_clock.rs`: what time it is by the engine's clock, without asking it.
//! - `store.rs`: what an engine must do. `shape/`: task, claim, fence, dead letter, time, error;
//!   how a run ends, and when it is tried again.
//!
//! **One task's way.**
//!
//! 1. `schedule` gives it to the engine, with the time at which it is due *by the engine's clock*.
//! 2. Up to `lookahead` (10 s; 24 s on NATS) before that, the engine gives it to one worker as a
//!    *claim*: a lease with an end, and a fence.
//! 3. The worker's *engine loop*, the thread that talks to the engine, files the claim in the
//!    wheel, and extends its lease when a quarter of it is over, together with all others that are
//!    as old. If the engine says that the claim is not the worker's any more, it leaves the wheel.
//!    A claim that comes late waits in a line: late ones leave an eighth of the threads to what is
//!    on time, for what a dead worker held comes all at once. What is due and no thread has begun
//!    within a second goes back, and the worker claims less for a while: an idle one gets it. When
//!    all threads are in long runs, what is due soon goes back before it is late.
//! 4. The wheel fires. A thread of the wheel looks whether the engine's clock has reached the due
//!    time, and whether the lease lasts by the worker's monotonic clock. Then it calls the handler.
//!    A task that waits for others first goes to the one thread that looks for them: it is put off
//!    as long as one of them is there, and comes back to the wheel otherwise.
//! 5. The end of the run goes to the engine loop's mailbox, and from there to the engine, many at a
//!    time. The engine compares the fence. A periodic task is filed for its next run in the same
//!    step.
//! 6. A run that failed is filed again, as [`Retry`] says, or becomes a dead letter.
//! 7. What is never answered is claimed again, and *doubtful*: its run may have ended the process.
//!    The worker has the engine note the start of a doubtful claim, and waits for that. If that run
//!    is not answered either, it counts as a failed attempt. So a run costs no write at its start
//!    until there is a doubt, and a task that only waited beside such a run counts nothing.
//!
//! **Whose clock.** The worker asks the engine for its time twice a second; `engine_clock.rs` says
//! what may be concluded from the answer. The worker's wall clock is compared with the engine's: if
//! they differ by more than a second, nothing is claimed ahead, and a counter tells.
//!
//! **Lease and lookahead.** A lease (8 s) is longer than an engine's fail-over, during which
//! nothing can be extended. It is shorter than the lookahead. So when a worker dies, others claim
//! its tasks when the leases end, and only those that were due within that time are late. On NATS a
//! delivery may be lost with a node. It is made again after a lease, so the lookahead is a lease
//! and an election long.
//!
//! Invariants:
//!
//! - **Nothing runs early** by the engine's clock, however wall clocks are set.
//! - **A task ends by the latest fence.** The end of a run under an older one is refused, and so is
//!   that of a task that was cancelled or moved.
//! - **A worker runs no claim whose lease has ended** by its own monotonic clock, counted from when
//!   the lease was asked for. A run that has begun goes on; the fence tells whether it counts.
//! - **What a worker holds is bounded**, and so is its mailbox: each claim ends once.
//! - **Threads of the wheel do not wait for the engine**, unless the worker is `strict`, or not
//!   sure of the claim, or the claim is doubtful: then the run waits for one answer, before it
//!   begins.
//! - **Nothing costs by the number of claims that are held**: leases are in an ordered set by the
//!   time of their extension.
#![forbid(unsafe_code)]

/// Compiles and runs the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod engine_clock;
#[cfg(feature = "file")]
mod file;
mod memory;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "postgres")]
mod postgres;
mod shape;
mod steps;
mod store;
mod table;
mod typed;
mod wait;
mod wakes;
mod worker;

/// What tests of crashes have instead of a file.
#[cfg(feature = "file")]
#[doc(hidden)]
pub use file::journal;
#[cfg(feature = "file")]
pub use file::{FileStore, Salvaged};
pub use memory::MemoryStore;
#[cfg(feature = "nats")]
pub use nats::{NatsBuilder, NatsStore};
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use shape::claim::{Claim, Fence, Verdict};
pub use shape::counts::Counts;
#[cfg(feature = "cron")]
pub use shape::cron::Cron;
pub use shape::dead::DeadLetter;
pub use shape::error::StoreError;
pub use shape::look::{Look, State};
pub use shape::outcome::{IntoOutcome, Outcome};
pub use shape::queue::{QueueChange, QueueRules};
pub use shape::rate::Rate;
pub use shape::retry::Retry;
pub use shape::rhythm::Rhythm;
pub use shape::task::{Due, Priority, Task};
pub use shape::terms::Terms;
pub use shape::timestamp::Timestamp;
pub use shape::waits::Waits;
pub use store::{Ask, Failure, TaskStore, Wake};
pub use tidewheel_scheduler::{CatchUp, Clock, Error, ManualClock, SystemClock};
pub use typed::codec::{Codec, Key};
#[cfg(feature = "serde")]
pub use typed::json::Json;
pub use typed::{Job, Jobs, PendingJob};
pub use wait::wait;
pub use worker::ack::Ack;
pub use worker::around::Around;
pub use worker::builder::{RunFuture, WorkerBuilder};
pub use worker::manual::ManualWorker;
pub use worker::run::Run;
pub use worker::stats::{Lateness, Stats};
pub use worker::{Stopped, Worker};
