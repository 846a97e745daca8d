//! A page that shows the tasks of a store: what is due when, what is dead, which queues are paused
//! or limited, how much its workers do and how late. Tasks can be cancelled and run at once, dead
//! letters tried again or removed, queues paused and resumed.
//!
//! It is an [`axum::Router`], to be mounted in a service of yours, behind whatever decides who may
//! come in: whoever can open the page can do all that it does. A call of a file's store blocks its
//! thread until the disk has it, and so does a request here.
//!
//! ```
//! use std::sync::Arc;
//! use tidewheel_console::Console;
//! use tidewheel_tasks::{MemoryStore, Worker};
//!
//! let store = Arc::new(MemoryStore::new());
//! let worker = Worker::builder(Arc::clone(&store)).start(|run| println!("{}", run.id()))?;
//! let page = Console::new(store).worker("mails", move || worker.stats()).router();
//! let service: axum::Router = axum::Router::new().nest("/tasks", page);
//! # let _ = service;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same things in a terminal: the command `tidewheel-tasks`, which this crate installs.
//!
//! # Addresses
//!
//! `id`, `queue` and the like stand behind the question mark. An answer is JSON; an error is a text
//! with 400 (refused), 404 (not there) or 502 (the engine failed).
//!
//! | address | what |
//! |---|---|
//! | `GET /` | the page, in one file, which asks for the rest |
//! | `GET /api/now` | the engine's time, queues with rules, the workers' numbers |
//! | `GET /api/dead?after=&most=` | a page of dead letters |
//! | `GET /api/task?id=` | one task |
//! | `GET /api/tasks?state=&queue=&after=&most=` | a page of those in a state (`pending` unless told otherwise, `claimed`, `done`, `dead`) |
//! | `GET /api/counts` | how much each queue has, by state: the page asks each 30 s, since it may cost by the number of tasks |
//! | `POST /api/cancel?id=`, `/api/run?id=` | ends a task; makes it due now |
//! | `POST /api/requeue?id=`, `/api/remove?id=` | tries a dead letter again; removes it |
//! | `POST /api/pause?queue=`, `/api/resume?queue=` | pauses a queue; resumes it |
//!
//! A page has 100 rows unless told otherwise, 10,000 at most, and ends when its payloads have 4 MB.
//! The next one begins `after` the last id, and an empty page is the end.
//!
//! A `POST` needs the header `x-tidewheel: 1`, which a page of somebody else's cannot send. What a
//! browser asks for a page of another site is refused.
#![forbid(unsafe_code)]

/// Compiles the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod api;
pub mod shown;

use std::fmt;
use std::sync::Arc;

use axum::Router;
use tidewheel_tasks::{Stats, TaskStore};

/// A worker's numbers, now.
type Numbers = Box<dyn Fn() -> Stats + Send + Sync>;

/// The store and the workers that the page shows.
pub struct Console<S> {
    store: Arc<S>,
    workers: Vec<(String, Numbers)>,
}

impl<S> fmt::Debug for Console<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}

impl<S: TaskStore> Console<S> {
    /// Shows a store.
    pub fn new(store: Arc<S>) -> Self {
        let workers = Vec::new();
        Self { store, workers }
    }

    /// Shows what a worker of this process does, too: throughput and lateness.
    #[must_use]
    pub fn worker(
        mut self,
        name: impl Into<String>,
        stats: impl Fn() -> Stats + Send + Sync + 'static,
    ) -> Self {
        self.workers.push((name.into(), Box::new(stats)));
        self
    }

    /// The page and its answers, to be mounted anywhere.
    pub fn router(self) -> Router {
        api::router(Arc::new(self))
    }
}
