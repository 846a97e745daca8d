//! `Durable` owns a durable scheduler. It starts with the jobs of the journal, and stops when all
//! is on disk.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tidewheel_time::{DefaultHashBuilder, ManualClock};

use super::handle::DurableHandle;
use super::job::Job;
use super::journal::Journal;
use super::name::Name;
use super::run::DurableRun;
use super::shared::Shared;
use crate::api::builder::Builder;
use crate::api::scheduler::{Progress, Scheduler, Stopped};
use crate::ground::error::{Error, JournalError};
use crate::jobs::outcome::IntoOutcome;

/// The result of [`Durable::stop`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DurableStopped<K, V> {
    /// Jobs that did not run, as in [`Stopped`], in no order. They stay in the journal, for the
    /// next start, as the dead letters do.
    pub pending: Vec<(K, V, Duration)>,
    /// Handlers that were still running when the limit was reached, and runs whose
    /// [`Ack`](crate::Ack) was held. They go on; those that have no end when the process ends run
    /// again after the next start.
    pub running: usize,
    /// Ok if everything is on disk. If it is not, tasks that have run may run again after the next
    /// start.
    pub journal: Result<(), JournalError>,
}

/// A scheduler whose tasks survive a crash: jobs.
///
/// A call returns when its change is on disk. A job ends in the journal when its handler has
/// returned, or when its [`Ack`](crate::Ack) says so. So it runs **at least once**: across a crash
/// it runs again if its end had not reached the disk. Jobs that became due while the process was
/// down run at once.
///
/// A run fails when the handler returns an error or panics, or when the `Ack` is dropped. Then the
/// job runs again, as [`Retry`](crate::Retry) says, and after its last attempt it is a [dead
/// letter](DurableHandle::dead_letters). In both cases it stays in the journal: a job leaves it by
/// its end or by a call of the user, and in no other way. If its key was set anew during the run,
/// the job that failed waits *without its key*, so that calls by key do not find it;
/// [`iter`](DurableHandle::iter) does.
///
/// A run that the end of the process cuts off has no outcome. To count it, the scheduler must have
/// noted its start on disk. It does so for the first run of each job that was due when the process
/// started: that run waits for the disk once before it begins, and no other does. So a job that
/// kills its process each time becomes a dead letter after one run more than
/// [`Retry`](crate::Retry) says, with the error "the process ended during the run". Jobs that were
/// running at the same time lose attempts too.
///
/// The changes of one key reach memory and the journal in the same order, also when several threads
/// make them. So after a crash the job that was set last is the one that is pending under the key.
/// All jobs of the journal are pending again before the first handler runs.
///
/// A journal that fails once is not asked again: every call that changes something reports the
/// failure from then on, while tasks go on running from memory. Start again with a journal that
/// works.
///
/// Deadlines are kept as wall time, so they are as right as the wall clock is when the process
/// starts again. Under [`BackPressure::Drop`](crate::BackPressure) a dropped job comes back at the
/// next start.
///
/// Dropping it stops it as [`stop`](Self::stop) does with no time for handlers, and waits for the
/// disk if nothing else holds the journal. So async code stops it and drops it where its runtime
/// allows blocking.
///
/// # Without threads
///
/// [`Durable::manual`] is the same in the time of a [`ManualClock`]: nothing happens but what the
/// caller does, so a test of what a program sets and handles is exact, crashes included. In four
/// steps:
///
/// 1. Make a clock, a journal and the scheduler; due jobs of the journal are not run yet.
/// 2. Set tasks and move the clock.
/// 3. Call [`run_due`](Durable::run_due): handlers run on this thread.
/// 4. To crash, drop it. [`MemoryJournal`](crate::MemoryJournal) keeps everything; a journal of
///    your own may also lose what was not waited for.
///
/// ```
/// use std::time::Duration;
/// use tidewheel_scheduler::{Durable, ManualClock, MemoryJournal, Scheduler};
///
/// let (clock, journal) = (ManualClock::new(), MemoryJournal::new());
/// let start = || {
///     Durable::manual(Scheduler::<u32, &str>::builder(), &clock, journal.clone(), |tasks, run| {
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
pub struct Durable<K, V, J, S = DefaultHashBuilder> {
    scheduler: Scheduler<Name<K>, Job<V>, S>,
    handle: DurableHandle<K, V, J, S>,
}

impl<K, V, J, S> fmt::Debug for Durable<K, V, J, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Durable").field(&self.handle).finish()
    }
}

impl<K, V, J, S> Deref for Durable<K, V, J, S> {
    type Target = DurableHandle<K, V, J, S>;

    fn deref(&self) -> &Self::Target {
        &self.handle
    }
}

impl<K, V, J, S> Durable<K, V, J, S> {
    pub(super) fn of(
        scheduler: Scheduler<Name<K>, Job<V>, S>,
        shared: Arc<Shared<K, V, J>>,
    ) -> Self {
        let handle = DurableHandle::of(scheduler.handle(), shared);
        Self { scheduler, handle }
    }

    /// A handle to keep elsewhere.
    #[must_use]
    pub fn handle(&self) -> DurableHandle<K, V, J, S> {
        self.handle.clone()
    }
}

impl<K, V, J, S> Durable<K, V, J, S>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Clone + Send + 'static,
    J: Journal<K, V> + 'static,
    S: BuildHasher + Clone + Send + Sync + 'static,
{
    /// Starts with the jobs of a journal and the usual [`Retry`](crate::Retry): short for
    /// `builder.durable(journal).start(handler)`.
    ///
    /// # Errors
    ///
    /// [`Error::Journal`], and those of [`Builder::start`].
    pub fn start<R: IntoOutcome>(
        builder: Builder<K, V, S>,
        journal: J,
        handler: impl Fn(&DurableHandle<K, V, J, S>, DurableRun<K, V>) -> R + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        builder.durable(journal).start(handler)
    }

    /// The same without threads, in the time of `clock`: calls of [`run_due`](Self::run_due) and
    /// [`advance`](Self::advance) run what is due, on the caller's thread. See
    /// [above](Self#without-threads).
    ///
    /// # Errors
    ///
    /// [`Error::Journal`], and those of [`Builder::manual`].
    pub fn manual<R: IntoOutcome>(
        builder: Builder<K, V, S>,
        clock: &ManualClock,
        journal: J,
        handler: impl Fn(&DurableHandle<K, V, J, S>, DurableRun<K, V>) -> R + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        builder.durable(journal).manual(clock, handler)
    }

    /// Runs what is due at `now` on this thread: see [`Scheduler::advance`]. Does not wait for the
    /// disk, but before jobs that were due at the start; to do that, call
    /// [`flush`](DurableHandle::flush).
    pub fn advance(&self, now: Duration, budget: u32) -> Progress {
        self.scheduler.advance(now, budget)
    }

    /// Runs what is due now until nothing is: see [`Scheduler::run_due`].
    pub fn run_due(&self) -> u64 {
        self.scheduler.run_due()
    }

    /// Takes no more jobs and waits for handlers and for held [`Ack`](crate::Ack)s, `limit` at
    /// most; then for the disk, until everything that has ended is there. With async handlers, drop
    /// their runtime after this.
    pub fn stop(&self, limit: Duration) -> DurableStopped<K, V> {
        let Stopped { pending, running } = self.scheduler.stop(limit);
        let plain = |(name, job, left): (Name<K>, Job<V>, Duration)| (name.key, job.value, left);
        DurableStopped {
            pending: pending.into_iter().map(plain).collect(),
            running,
            journal: self.handle.flush_journal(),
        }
    }
}
