//! The owner of a durable scheduler: it starts with what the journal holds, and stops when all is on disk.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tidewheel_time::ManualClock;

use super::handle::DurableHandle;
use super::journal::Journal;
use super::ordered::OrderedJournal;
use super::restore::{Restored, run_all};
use super::run::{DurableRun, Journaled, JournaledHandle, JournaledRun};
use crate::api::builder::Builder;
use crate::api::scheduler::{Progress, Scheduler, Stopped};
use crate::core::hash::RandomState;
use crate::ground::error::{Error, JournalError};

/// What [`Durable::stop`] leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurableStopped<K, V> {
    /// Tasks that did not run, as in [`Stopped`]. They stay in the journal, for the next start.
    pub pending: Vec<(K, V, Duration)>,
    /// Handlers that were still running when the limit was reached. They run on, and again after the next start.
    pub running: usize,
    /// Whether everything is on disk. If it is not, tasks that have run may run again after the next start.
    pub journal: Result<(), JournalError>,
}

/// A scheduler whose pending tasks survive a crash.
///
/// A call returns when its change is on disk. A task is ended in the journal when its handler has returned or
/// panicked. So across a crash a task runs **at least once**: it runs again if its handler had not returned, or if its
/// end had not reached the disk. Tasks that became due while the process was down run at once.
///
/// The changes of one key reach memory and the journal in the same order, also when several threads make them. So
/// after a crash the task that was set last is the one that is pending. All tasks of the journal are pending again
/// before the first handler runs.
///
/// A journal that fails once is not asked again: every call that changes something reports the failure from then
/// on, while tasks go on running from memory. Start again with a journal that works.
///
/// Deadlines are kept as wall time, so they are as right as the wall clock is when the process starts
/// again. Periodic tasks are not kept: set them when the program starts. Under
/// [`BackPressure::Drop`](crate::BackPressure) a dropped task comes back at the next start.
///
/// # Without threads
///
/// [`Durable::manual`] is the same in the time of a [`ManualClock`]: nothing happens but what the caller does,
/// so a test of what a program sets and handles is exact, crashes included. In four steps:
///
/// 1. Make a clock, a journal and the scheduler; due tasks of the journal are not run yet, but those that
///    were cut off are.
/// 2. Set tasks and move the clock.
/// 3. Call [`run_due`](Durable::run_due): handlers run on this thread.
/// 4. To crash, drop it. A journal that a test can write may keep what was not waited for, or lose it.
///
/// ```
/// # use std::sync::{Arc, Mutex};
/// # use tidewheel_scheduler::{Change, Journal, JournalError, Record};
/// # /// A journal in memory.
/// # #[derive(Clone, Default)]
/// # struct Memory(Arc<Mutex<Vec<Record<u32, &'static str>>>>);
/// # impl Journal<u32, &'static str> for Memory {
/// #     fn append(&self, changes: &[Change<'_, u32, &'static str>]) -> Result<u64, JournalError> {
/// #         let mut tasks = self.0.lock().unwrap();
/// #         for change in changes {
/// #             match *change {
/// #                 Change::Set { id, key, value, due } => {
/// #                     tasks.push(Record { id, key: *key, value: *value, due });
/// #                 }
/// #                 Change::Move { id, due } => {
/// #                     tasks.iter_mut().filter(|task| task.id == id).for_each(|task| task.due = due);
/// #                 }
/// #                 Change::End { id } => tasks.retain(|task| task.id != id),
/// #             }
/// #         }
/// #         Ok(0)
/// #     }
/// #     fn wait(&self, _: u64) -> Result<(), JournalError> { Ok(()) }
/// #     fn load(&self) -> Result<Vec<Record<u32, &'static str>>, JournalError> {
/// #         Ok(self.0.lock().unwrap().clone())
/// #     }
/// #     fn epoch(&self) -> u64 { 1 }
/// # }
/// use std::time::Duration;
/// use tidewheel_scheduler::{Durable, ManualClock, Scheduler};
///
/// let (clock, journal) = (ManualClock::new(), Memory::default());
/// let start = || {
///     Durable::manual(Scheduler::builder(), &clock, journal.clone(), |tasks, run| {
///         if run.value == "invoice" {
///             let _ = tasks.set(run.key, "reminder", Duration::from_secs(3600));
///         }
///     })
/// };
///
/// let tasks = start()?;
/// tasks.set(7, "invoice", Duration::from_secs(60))?;
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(tasks.run_due(), 1);
///
/// // A crash, and half an hour until the program runs again.
/// drop(tasks);
/// clock.advance(Duration::from_secs(1800));
/// let tasks = start()?;
/// assert_eq!(tasks.get(&7), Some(Duration::from_secs(1800)));
/// # Ok::<(), tidewheel_scheduler::Error>(())
/// ```
pub struct Durable<K: Hash + Eq, V, J, S: BuildHasher = RandomState> {
    scheduler: Scheduler<K, Journaled<V>, S>,
    handle: DurableHandle<K, V, J, S>,
}

impl<K: Hash + Eq, V, J, S: BuildHasher> fmt::Debug for Durable<K, V, J, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Durable").field(&self.handle).finish()
    }
}

impl<K: Hash + Eq, V, J, S: BuildHasher> Deref for Durable<K, V, J, S> {
    type Target = DurableHandle<K, V, J, S>;

    fn deref(&self) -> &Self::Target {
        &self.handle
    }
}

impl<K, V, J, S> Durable<K, V, J, S>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Send + 'static,
    J: Journal<K, V> + 'static,
    S: BuildHasher + Clone + Send + Sync + 'static,
{
    /// Starts a scheduler with what the journal holds.
    ///
    /// A task whose handler was cut off by a crash is pending again. But a key has only one pending task: if the key
    /// had got another task when the crash came, that one is pending, and the one that was cut off is run before this
    /// returns, on this thread.
    ///
    /// # Errors
    ///
    /// [`Error::Journal`], and those of [`Builder::start`].
    pub fn start(
        builder: Builder<K, Journaled<V>, S>,
        journal: J,
        handler: impl Fn(&DurableHandle<K, V, J, S>, DurableRun<K, V>) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let (journal, records) = OrderedJournal::open(journal).map_err(Error::Journal)?;
        let (journal, restored) = (Arc::new(journal), Restored::of(records));
        let runner = runner(&journal, handler);
        let (scheduler, cut_off) = builder.start_filled(runner, |handle| restored.fill(handle))?;
        run_all(&scheduler, cut_off);
        Ok(Self::of(scheduler, journal))
    }

    /// The same without threads, in the time of `clock`: calls of [`advance`](Self::advance) run what is due, on
    /// the caller's thread. See [above](Self#without-threads).
    ///
    /// # Errors
    ///
    /// [`Error::Journal`], and those of [`Builder::manual`].
    pub fn manual(
        builder: Builder<K, Journaled<V>, S>,
        clock: &ManualClock,
        journal: J,
        handler: impl Fn(&DurableHandle<K, V, J, S>, DurableRun<K, V>) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let (journal, records) = OrderedJournal::open(journal).map_err(Error::Journal)?;
        let (journal, restored) = (Arc::new(journal), Restored::of(records));
        let scheduler = builder.manual(clock, runner(&journal, handler))?;
        let cut_off = restored.fill(&scheduler)?;
        run_all(&scheduler, cut_off);
        Ok(Self::of(scheduler, journal))
    }

    fn of(scheduler: Scheduler<K, Journaled<V>, S>, journal: Arc<OrderedJournal<J>>) -> Self {
        let handle = DurableHandle::of(scheduler.handle(), journal);
        Self { scheduler, handle }
    }

    /// Runs what is due on this thread: see [`Scheduler::advance`]. Does not wait for the disk; to do that,
    /// call [`flush`](DurableHandle::flush).
    pub fn advance(&self, now: Duration, budget: u32) -> Progress {
        self.scheduler.advance(now, budget)
    }

    /// Runs what is due now until nothing is: see [`Scheduler::run_due`].
    pub fn run_due(&self) -> u64 {
        self.scheduler.run_due()
    }

    /// Takes no more tasks and waits for handlers, `limit` at most; then for the disk, until everything that
    /// has ended is there.
    pub fn stop(&self, limit: Duration) -> DurableStopped<K, V> {
        let Stopped { pending, running } = self.scheduler.stop(limit);
        let plain = |(key, kept, left): (K, Journaled<V>, Duration)| (key, kept.value, left);
        DurableStopped {
            pending: pending.into_iter().map(plain).collect(),
            running,
            journal: self.handle.flush_journal(),
        }
    }
}

/// What the scheduler runs: the user's handler, and then the end of its task.
fn runner<K, V, J, S>(
    journal: &Arc<OrderedJournal<J>>,
    handler: impl Fn(&DurableHandle<K, V, J, S>, DurableRun<K, V>) + Send + Sync + 'static,
) -> impl Fn(&JournaledHandle<K, V, S>, JournaledRun<K, V>) + Send + Sync + 'static
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Send + 'static,
    J: Journal<K, V> + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    let journal = Arc::clone(journal);
    move |handle: &JournaledHandle<_, _, _>, run| {
        let handle = DurableHandle::of(handle.clone(), Arc::clone(&journal));
        handle.run(run, &handler);
    }
}
