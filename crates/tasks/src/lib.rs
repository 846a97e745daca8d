//! Tasks for many machines: a coarse engine keeps them, a fine wheel runs them.
//!
//! An engine that you already run ([`TaskStore`]: NATS JetStream, Postgres, or a file for one
//! machine) keeps the tasks. Each [`Worker`] *claims* those that become due within the next
//! seconds, holds them in a local timing wheel, and runs each at its millisecond. It tells the
//! engine afterwards. So an engine that fails over for a few seconds delays nothing.
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
//! # What is promised
//!
//! - **Never early**, by the engine's clock. A worker's wall clock decides nothing.
//! - **At least once.** A task ends when its handler has succeeded and the engine knows. A claim is
//!   a *lease*: when its worker dies, the lease ends and another worker claims the task.
//! - **Fenced.** Each claim has a [`Fence`]: a number greater than those of all earlier claims of
//!   the same id. An engine refuses the end of a run whose fence is no longer the latest. Handlers
//!   can pass it on.
//! - **Retried** with back-off and jitter as [`Retry`] says; after the last attempt a task is a
//!   [dead letter](DeadLetter).
//! - **Periodic tasks survive**: the next run is filed in the same step in which the engine learns
//!   of the end of this one.
//! - **Bounded**: a worker holds so many claims and no more.
#![forbid(unsafe_code)]

/// Compiles and runs the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod embedded;
mod engine_clock;
mod memory;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "postgres")]
mod postgres;
mod shape;
mod store;
mod table;
mod wait;
mod worker;

#[cfg(feature = "embedded")]
pub use embedded::EmbeddedStore;
pub use embedded::JournalStore;
pub use memory::MemoryStore;
#[cfg(feature = "nats")]
pub use nats::{NatsBuilder, NatsStore};
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use shape::claim::{Claim, Fence, Verdict};
pub use shape::dead::DeadLetter;
pub use shape::error::StoreError;
pub use shape::task::{Due, Priority, Task};
pub use shape::timestamp::Timestamp;
pub use store::{Ask, Failure, TaskStore, Wake};
pub use tidewheel_scheduler::{
    Clock, Error, IntoOutcome, ManualClock, Outcome, Retry, SystemClock,
};
pub use wait::wait;
pub use worker::builder::{RunFuture, WorkerBuilder};
pub use worker::manual::ManualWorker;
pub use worker::run::Run;
pub use worker::stats::{Lateness, Stats};
pub use worker::{Stopped, Worker};
