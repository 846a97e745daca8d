//! A worker claims ahead, holds claims in the wheel, runs them at the millisecond, and tells the
//! engine.
//!
//! Three kinds of threads. The *engine loop* is one thread that talks to the engine: it brings
//! claims, extends their leases, and takes the ends of runs back. The threads of the wheel run
//! handlers; they wait for the engine only before a claim that is doubtful, or unsure, or if the
//! worker is strict. One thread looks for what tasks wait for that wait for others.

pub(crate) mod ack;
pub(crate) mod around;
pub(crate) mod builder;
mod control;
mod ends;
mod engine_loop;
mod fire;
mod held;
mod late;
mod mailbox;
pub(crate) mod manual;
#[cfg(feature = "metrics")]
mod metrics;
pub(crate) mod run;
mod seen;
mod settings;
mod shared;
pub(crate) mod stats;
mod turns;
mod waits;

use std::fmt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tidewheel_scheduler::Scheduler;
use tidewheel_time::Clock;

use self::shared::Shared;
use self::stats::Stats;
use crate::store::TaskStore;

/// A worker that drains looks so often whether all has run.
const LOOK: Duration = Duration::from_millis(5);

/// A running worker. Dropping it is [`stop`](Self::stop) without waiting for handlers.
pub struct Worker<S: TaskStore> {
    shared: Arc<Shared<S>>,
    wheel: Scheduler<u64, ()>,
    engine_loop: Option<JoinHandle<()>>,
    turns: Option<JoinHandle<()>>,
}

/// The result of [`Worker::stop`] and [`Worker::drain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Claims that were given back to the engine meanwhile.
    pub released: u64,
    /// Claims whose end the engine does not know: handlers that still run, or an engine that does
    /// not answer. Their leases end by themselves.
    pub left: usize,
}

impl<S: TaskStore> fmt::Debug for Worker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Worker")
            .field(&self.shared.settings)
            .finish()
    }
}

impl<S: TaskStore> Worker<S> {
    /// The store that it works for.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.shared.store
    }

    /// Statistics: the runs so far, and the claims that are held.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Claims nothing more, waits for the handlers that run, gives back what was not run, and tells
    /// the engine about all ends: within `limit`, and the time that the engine takes for its last
    /// answer.
    #[must_use = "it tells what was left"]
    pub fn stop(mut self, limit: Duration) -> Stopped {
        self.end(limit)
    }

    /// Stops as [`stop`](Self::stop) does; but first it runs what it holds that is due by now, and
    /// only what is due later goes back: within `limit`, after which the rest goes back too.
    #[must_use = "it tells what was left"]
    pub fn drain(mut self, limit: Duration) -> Stopped {
        let now = self.shared.clock.now();
        let until = now.saturating_add(limit);
        let before = self.shared.stats().released;
        self.shared.mailbox.stop_claiming();
        let later = self.shared.held().end_later(now);
        for key in &later {
            // It is not there if it has fired.
            let _ = self.wheel.remove(key);
        }
        self.shared.give_back(later.into_iter());
        let is_busy = || self.shared.held().unfinished() > 0;
        while is_busy() && self.shared.clock.now() < until {
            thread::sleep(LOOK);
        }
        let left = until.saturating_sub(self.shared.clock.now());
        let mut stopped = self.end(left);
        stopped.released = self.shared.stats().released - before;
        stopped
    }

    fn end(&mut self, limit: Duration) -> Stopped {
        let until = self.shared.clock.now().saturating_add(limit);
        let before = self.shared.stats().released;
        self.shared.mailbox.stop_claiming();
        self.shared.turns.stop();
        let pending = self.wheel.stop(limit).pending;
        let keys = pending.into_iter().map(|(key, (), _)| key);
        self.shared.give_back(keys);
        if let Some(turns) = self.turns.take() {
            // It does not panic, as the engine loop does not.
            drop(turns.join());
        }
        self.shared.mailbox.stop(until);
        if let Some(engine_loop) = self.engine_loop.take() {
            // It does not panic: what it runs of others are the store's calls, whose panics would
            // be ours to see.
            drop(engine_loop.join());
        }
        Stopped {
            released: self.shared.stats().released - before,
            left: self.shared.held().len(),
        }
    }
}

impl<S: TaskStore> Drop for Worker<S> {
    fn drop(&mut self) {
        if self.engine_loop.is_some() {
            self.end(Duration::ZERO);
        }
    }
}
