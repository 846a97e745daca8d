//! `Scheduler` owns a running scheduler: its threads, and their end.

use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::thread::JoinHandle;
use std::time::Duration;

use tidewheel_time::{DefaultHashBuilder, Moment, nanos};

use crate::api::handle::Handle;
use crate::core::tasks::Due;
use crate::drive::inner::Rounds;
use crate::drive::threads::{Threads, is_another};
use crate::ground::reentry::ReentryGuard;
use crate::ground::sync::{Mutex, lock};

/// Tasks by key, each run once when its time has come, by a bounded number of threads.
///
/// Tasks are set and moved by [`Handle`], to which this dereferences. Dropping the scheduler drops
/// the pending tasks; [`stop`](Self::stop) returns them. Both wait for the timing thread. Only
/// `stop` waits for handlers that run, for as long as its argument says.
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use tidewheel_scheduler::Scheduler;
///
/// let (ran, runs) = mpsc::channel();
/// let scheduler = Scheduler::<&str, u32>::builder()
///     .workers(2)
///     .start(move |_, run| ran.send((run.key, run.value)).expect("the receiver lives"))?;
///
/// scheduler.set("close", 7, Duration::from_secs(30))?;
/// scheduler.set("never", 8, Duration::from_millis(1))?;
/// assert_eq!(scheduler.remove("never"), Some(8));
/// assert!(scheduler.move_to("close", Duration::from_millis(2)));
/// assert_eq!(runs.recv(), Ok(("close", 7)));
/// # Ok::<(), tidewheel_scheduler::Error>(())
/// ```
#[derive(Debug)]
pub struct Scheduler<K, V, S = DefaultHashBuilder> {
    handle: Handle<K, V, S>,
    threads: Mutex<Threads>,
    /// Between the calls of `advance`.
    rounds: Mutex<Rounds>,
}

/// The result of [`Scheduler::stop`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped<K, V> {
    /// Tasks that did not run: key, value, and how long they had to wait. That is zero if their
    /// time had come.
    pub pending: Vec<(K, V, Duration)>,
    /// Handlers that were still running when the limit was reached, and futures of async handlers.
    /// They run on.
    pub running: usize,
}

/// The result of [`Scheduler::advance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Tasks whose time had come. All of them were run, except runs of periodic tasks that were
    /// removed by a run before.
    pub fired: u64,
    /// Timer records moved or dropped.
    pub moved: u64,
    /// True if the budget ran out first: call again.
    pub backlog: bool,
    /// The time until the next call is worth while: never longer than until the next task. `None`
    /// when nothing is pending; but after removals it may still be the time of a task that was
    /// removed.
    pub next: Option<Duration>,
}

impl<K, V, S> Deref for Scheduler<K, V, S> {
    type Target = Handle<K, V, S>;

    fn deref(&self) -> &Self::Target {
        &self.handle
    }
}

impl<K, V, S> Scheduler<K, V, S> {
    pub(crate) fn new(handle: Handle<K, V, S>, threads: Threads) -> Self {
        Self {
            handle,
            threads: Mutex::new(threads),
            rounds: Mutex::new(Rounds::default()),
        }
    }

    /// A handle to keep elsewhere.
    #[must_use]
    pub fn handle(&self) -> Handle<K, V, S> {
        self.handle.clone()
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Scheduler<K, V, S> {
    /// Runs what is due at `now` on this thread, shard after shard, touching at most `budget` timer
    /// records. `now` is a reading of [`now`](Handle::now); a later one counts as that. For
    /// schedulers made by [`Builder::manual`](crate::Builder::manual); where threads run tasks it
    /// does nothing.
    ///
    /// # Panics
    ///
    /// When a handler calls it: it would wait for itself.
    pub fn advance(&self, now: Duration, budget: u32) -> Progress {
        let inner = self.handle.inner();
        if !inner.manual {
            return Progress::default();
        }
        let since = Moment(nanos(now.saturating_sub(inner.clock.first())));
        let now = since.min(inner.now());
        let mut budget = budget;
        let _inside = ReentryGuard::enter(
            &self.rounds,
            "a handler advanced the scheduler that runs it",
        );
        let mut rounds = lock(&self.rounds);
        let pass = inner.pass(
            &mut rounds,
            now.tick(),
            &mut budget,
            || inner.queue.runs_left(),
            |batch| {
                batch.drain(..).for_each(|due| inner.run(due));
            },
        );
        let next = inner.shards.next();
        Progress {
            fired: pass.fired,
            moved: pass.moved,
            backlog: pass.backlog,
            next: (next != tidewheel_time::NEVER).then(|| now.until(next)),
        }
    }

    /// Runs what is due now, on this thread, until nothing is: for tests of programs that use
    /// [`Builder::manual`](crate::Builder::manual). Returns how many tasks it ran. A handler that
    /// sets a task that is due at once keeps it going.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel_scheduler::{ManualClock, Scheduler};
    ///
    /// let clock = ManualClock::new();
    /// let scheduler = Scheduler::<u32, ()>::builder().manual(&clock, |_, _| {})?;
    /// scheduler.set(7, (), Duration::from_secs(60))?;
    /// clock.advance(Duration::from_secs(59));
    /// assert_eq!(scheduler.run_due(), 0);
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(scheduler.run_due(), 1);
    /// # Ok::<(), tidewheel_scheduler::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// When a handler calls it.
    pub fn run_due(&self) -> u64 {
        let mut fired = 0;
        loop {
            let progress = self.advance(self.handle.now(), u32::MAX);
            fired += progress.fired;
            // Nothing is due, or as many runs are unfinished as may be.
            if progress.fired == 0 {
                return fired;
            }
        }
    }
}

impl<K, V, S> Scheduler<K, V, S> {
    /// Takes no more tasks, lets those run that wait for a worker, and waits for the handlers,
    /// `limit` at most. Returns what did not run. A second call returns nothing.
    ///
    /// A handler that calls this waits for itself until the limit. Copies and drops of user code
    /// that run on the timing thread are waited for without a limit.
    pub fn stop(&self, limit: Duration) -> Stopped<K, V> {
        let inner = self.handle.inner();
        inner.alarm.stop();
        let workers = self.end_timing();
        let mut pending = Vec::new();
        for at in 0..inner.shards.count() {
            let mut held = inner.shards.hold(at);
            held.state.closed = true;
            let now = inner.now();
            let tasks = held.state.tasks.take_all();
            held.publish();
            let rows = tasks.map(|(key, value, deadline)| (key, value, now.until(deadline)));
            pending.extend(rows);
        }
        inner.queue.close();
        let all_done = inner.queue.wait_idle(limit);
        let queued = inner.queue.take_all();
        inner.counters.return_some(queued.len());
        let rows = queued
            .into_iter()
            .filter(|due| !due.recall.is_recalled())
            .map(|Due { key, value, .. }| (key, value, Duration::ZERO));
        pending.extend(rows);
        let (_, running, deferred) = inner.queue.load();
        if all_done {
            for worker in workers.into_iter().filter(is_another) {
                // Panics of handlers were caught and counted.
                drop(worker.join());
            }
        }
        let running = running + deferred;
        Stopped { pending, running }
    }

    /// Waits for the timing thread, after which nothing comes to the queue; returns the workers,
    /// the first time.
    fn end_timing(&self) -> Vec<JoinHandle<()>> {
        if self.handle.inner().is_timing_thread() {
            // Called by a `Drop` that runs on the timing thread: it cannot wait for itself.
            return Vec::new();
        }
        // Under the lock: when several threads stop the scheduler, all wait for the timing thread.
        let mut threads = lock(&self.threads);
        if let Some(timing) = threads.timing.take() {
            // It does not panic: panics of user code are caught on it.
            drop(timing.join());
        }
        std::mem::take(&mut threads.workers)
    }
}

impl<K, V, S> Drop for Scheduler<K, V, S> {
    fn drop(&mut self) {
        drop(self.stop(Duration::ZERO));
    }
}
