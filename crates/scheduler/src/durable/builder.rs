//! The builder sets the options of a durable scheduler: retries, dead letters, unfinished runs, and
//! the kind of handler.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tidewheel_time::{DefaultHashBuilder, ManualClock};

use super::handle::DurableHandle;
use super::job::{Job, JobHandle, JobRun};
use super::journal::Journal;
use super::name::Name;
use super::ordered::OrderedJournal;
use super::restore::Restored;
use super::run::DurableRun;
use super::scheduler::Durable;
use super::shared::Shared;
use crate::api::builder::Builder;
use crate::api::spawned::JobFuture;
use crate::ground::error::Error;
use crate::jobs::dead::DeadLetters;
use crate::jobs::outcome::IntoOutcome;
use crate::jobs::retry::Retry;

/// Dead letters, unless somebody says another number.
const DEAD_LETTERS: usize = 10_000;

/// Options of a [`Durable`], from [`Builder::durable`].
///
/// ```
/// use std::time::Duration;
/// use tidewheel_scheduler::{MemoryJournal, Retry, Scheduler};
///
/// let jobs = Scheduler::<u32, &str>::builder()
///     .workers(2)
///     .durable(MemoryJournal::new())
///     .retry(Retry::default().attempts(3))
///     .start(|_, run| {
///         if run.attempt == 1 {
///             return Err("the server does not answer");
///         }
///         Ok(())
///     })?;
/// jobs.set(7, "mail", Duration::ZERO)?;
/// # Ok::<(), tidewheel_scheduler::Error>(())
/// ```
pub struct DurableBuilder<K, V, J, S = DefaultHashBuilder> {
    builder: Builder<Name<K>, Job<V>, S>,
    journal: J,
    retry: Retry,
    dead_letters: usize,
}

impl<K, V, J, S> fmt::Debug for DurableBuilder<K, V, J, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableBuilder")
            .field("builder", &self.builder)
            .field("retry", &self.retry)
            .field("dead_letters", &self.dead_letters)
            .finish_non_exhaustive()
    }
}

impl<K, V, S> Builder<K, V, S> {
    /// The same with a journal: its tasks are jobs, which survive a crash, are retried and
    /// acknowledged.
    pub fn durable<J>(self, journal: J) -> DurableBuilder<K, V, J, S> {
        DurableBuilder {
            builder: self.retyped(|hasher| hasher),
            journal,
            retry: Retry::default(),
            dead_letters: DEAD_LETTERS,
        }
    }
}

impl<K, V, J, S> DurableBuilder<K, V, J, S> {
    /// Sets the number of attempts of a job, and the waits between them.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Bounds the dead letters that are kept (default 10,000). When there are so many, a job that
    /// should become one is tried again instead, after the longest wait of [`Retry`], until there
    /// is room. Those that the journal has at the start are kept, however many they are.
    #[must_use]
    pub fn dead_letters(mut self, letters: usize) -> Self {
        self.dead_letters = letters;
        self
    }

    /// Bounds the runs that are unfinished at the same time (default 1,024, and no fewer than there
    /// are workers): handlers that run, and runs whose [`Ack`](crate::Ack) is held. When there are
    /// so many, due jobs wait for a worker, and callers do not wait for room under
    /// [`BackPressure::Wait`](crate::BackPressure::Wait).
    #[must_use]
    pub fn in_flight(mut self, runs: usize) -> Self {
        self.builder = self.builder.in_flight(runs);
        self
    }
}

impl<K, V, J, S> DurableBuilder<K, V, J, S>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Clone + Send + 'static,
    J: Journal<K, V> + 'static,
    S: BuildHasher + Clone + Send + Sync + 'static,
{
    /// Starts with the jobs of the journal. `handler` runs on the workers. What it returns says how
    /// the run ended: nothing, a `Result`, or an [`Outcome`](crate::Outcome). A run whose handler
    /// panics has failed.
    ///
    /// # Errors
    ///
    /// [`Error::Journal`], and those of [`Builder::start`].
    pub fn start<R: IntoOutcome>(
        self,
        handler: impl Fn(&DurableHandle<K, V, J, S>, DurableRun<K, V>) -> R + Send + Sync + 'static,
    ) -> Result<Durable<K, V, J, S>, Error> {
        let (builder, shared, restored) = self.open()?;
        let fill = |handle: &JobHandle<K, V, S>| restored(handle.clone());
        let scheduler = builder.start_filled(runner(&shared, handler), fill)?;
        Ok(Durable::of(scheduler, shared))
    }

    /// The same without threads, in the time of `clock`: calls of [`Durable::run_due`] and
    /// [`Durable::advance`] run what is due, on the caller's thread. See
    /// [there](Durable#without-threads).
    ///
    /// # Errors
    ///
    /// [`Error::Journal`], and those of [`Builder::manual`].
    pub fn manual<R: IntoOutcome>(
        self,
        clock: &ManualClock,
        handler: impl Fn(&DurableHandle<K, V, J, S>, DurableRun<K, V>) -> R + Send + Sync + 'static,
    ) -> Result<Durable<K, V, J, S>, Error> {
        let (builder, shared, restored) = self.open()?;
        let fill = |handle: &JobHandle<K, V, S>| restored(handle.clone());
        let scheduler = builder.manual_filled(clock, runner(&shared, handler), fill)?;
        Ok(Durable::of(scheduler, shared))
    }

    /// Starts it with an async handler. `spawn` hands its future to a runtime, whichever it is. A
    /// run ends when its future does. If the future panics or the runtime drops it, the run has
    /// failed. [`in_flight`](Self::in_flight) bounds the futures.
    ///
    /// The calls of the handle wait for the disk: in a future, make them where the runtime allows
    /// blocking. At the end, stop the jobs first and drop the runtime then: a future that the
    /// runtime drops is a run that failed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel_scheduler::{MemoryJournal, Scheduler};
    ///
    /// # let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    /// # let of_jobs = runtime.handle().clone();
    /// let jobs = Scheduler::<u32, String>::builder()
    ///     .durable(MemoryJournal::new())
    ///     .start_async(
    ///         move |future| drop(of_jobs.spawn(future)),
    ///         |_, run| async move {
    ///             println!("{} is sent", run.value);
    ///             Ok::<(), std::io::Error>(())
    ///         },
    ///     )?;
    /// jobs.set(7, "mail".to_owned(), Duration::ZERO)?;
    /// # Ok::<(), tidewheel_scheduler::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`start`](Self::start).
    pub fn start_async<F>(
        self,
        spawn: impl Fn(JobFuture) + Send + Sync + 'static,
        handler: impl Fn(DurableHandle<K, V, J, S>, DurableRun<K, V>) -> F + Send + Sync + 'static,
    ) -> Result<Durable<K, V, J, S>, Error>
    where
        F: Future<Output: IntoOutcome> + Send + 'static,
    {
        self.start(spawned(spawn, handler))
    }

    /// Makes a manual one with an async handler: see [`manual`](Self::manual) and
    /// [`start_async`](Self::start_async).
    ///
    /// # Errors
    ///
    /// Those of [`manual`](Self::manual).
    pub fn manual_async<F>(
        self,
        clock: &ManualClock,
        spawn: impl Fn(JobFuture) + Send + Sync + 'static,
        handler: impl Fn(DurableHandle<K, V, J, S>, DurableRun<K, V>) -> F + Send + Sync + 'static,
    ) -> Result<Durable<K, V, J, S>, Error>
    where
        F: Future<Output: IntoOutcome> + Send + 'static,
    {
        self.manual(clock, spawned(spawn, handler))
    }

    /// Reads the journal. Returns the options of the scheduler underneath, what its handles share,
    /// and what sets the journal's jobs.
    #[allow(clippy::type_complexity, reason = "named once, used twice")]
    fn open(
        self,
    ) -> Result<
        (
            Builder<Name<K>, Job<V>, S>,
            Arc<Shared<K, V, J>>,
            impl FnOnce(JobHandle<K, V, S>) -> Result<(), Error>,
        ),
        Error,
    > {
        let (journal, records) = OrderedJournal::open(self.journal).map_err(Error::Journal)?;
        let Restored { pending, dead } = Restored::of(records);
        let shared = Arc::new(Shared {
            journal,
            dead: DeadLetters::new(self.dead_letters, dead),
            retry: self.retry,
            failed: AtomicU64::new(0),
            retried: AtomicU64::new(0),
        });
        let of_restore = Arc::clone(&shared);
        let restore = move |handle| DurableHandle::of(handle, of_restore).restore(pending);
        Ok((self.builder, shared, restore))
    }
}

/// The handler of the scheduler underneath.
fn runner<K, V, J, S, R>(
    shared: &Arc<Shared<K, V, J>>,
    handler: impl Fn(&DurableHandle<K, V, J, S>, DurableRun<K, V>) -> R + Send + Sync + 'static,
) -> impl Fn(&JobHandle<K, V, S>, JobRun<K, V>, u64) + Send + Sync + 'static
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Clone + Send + 'static,
    J: Journal<K, V> + 'static,
    S: BuildHasher + Send + Sync + 'static,
    R: IntoOutcome,
{
    let shared = Arc::clone(shared);
    move |handle: &JobHandle<K, V, S>, run: JobRun<K, V>, deadline| {
        let handle = DurableHandle::of_handler(handle.clone(), Arc::clone(&shared));
        handle.run(run, deadline, &handler);
    }
}

/// An async handler as one that returns at once and leaves the end of the run to a future.
fn spawned<K, V, J, S, F>(
    spawn: impl Fn(JobFuture) + Send + Sync + 'static,
    handler: impl Fn(DurableHandle<K, V, J, S>, DurableRun<K, V>) -> F + Send + Sync + 'static,
) -> impl Fn(&DurableHandle<K, V, J, S>, DurableRun<K, V>) + Send + Sync + 'static
where
    F: Future<Output: IntoOutcome> + Send + 'static,
{
    move |handle: &DurableHandle<K, V, J, S>, run: DurableRun<K, V>| {
        let ack = run.ack();
        let future = handler(handle.clone(), run);
        spawn(Box::pin(async move { ack.settle(future.await) }));
    }
}
