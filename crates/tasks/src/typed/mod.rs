//! Tasks with keys and values of a program's own types, over any store.

pub(crate) mod codec;
#[cfg(feature = "serde")]
pub(crate) mod json;
#[cfg(feature = "serde")]
mod nulls;

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::time::Duration;

use tidewheel_scheduler::CatchUp;

use self::codec::{Codec, Key};
use crate::shape::dead::DeadLetter;
use crate::shape::error::StoreError;
use crate::shape::look::Look;
use crate::shape::many::TASKS_MAX;
use crate::shape::outcome::{IntoOutcome, Outcome};
use crate::shape::task::{Due, Task};
use crate::shape::timestamp::Timestamp;
use crate::store::TaskStore;
use crate::worker::run::Run;

/// Why a task is no job of these types.
const OTHER_KEY: &str = "its id was not written as a key of this type";
const OTHER_VALUE: &str = "its payload was not written as a value of this type";

/// The future of an async handler of jobs.
type OutcomeFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Tasks by a key of type `K`, each with a value of type `V`, in a store. Clones have the same
/// store.
///
/// ```
/// use std::sync::{Arc, mpsc};
/// use std::time::Duration;
/// use tidewheel_tasks::{Jobs, MemoryStore, Worker, wait};
///
/// // Or `FileStore::open("jobs.redb")?`.
/// let jobs = Jobs::<_, u64, String>::new(Arc::new(MemoryStore::new()));
/// let (sent, mails) = mpsc::channel();
/// let worker = Worker::builder(Arc::clone(jobs.store())).start(jobs.handler(move |jobs, job| {
///     println!("attempt {} to send {}", job.attempt(), job.value);
///     let reminder = format!("{}, again", job.value);
///     let hour = Duration::from_secs(3600);
///     let _ = tidewheel_tasks::wait(jobs.set(&(job.key + 1), &reminder, hour));
///     let _ = sent.send(job.key);
/// }))?;
/// wait(jobs.set(&7, &"a mail".to_owned(), Duration::ZERO))?;
/// assert_eq!(mails.recv(), Ok(7));
/// assert_eq!(worker.stop(Duration::from_secs(5)).left, 0);
/// assert_eq!(wait(jobs.look(&8))?.map(|job| job.value).as_deref(), Some("a mail, again"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A task whose id or payload cannot be read as these types becomes a dead letter that says so: the
/// store has what others wrote.
pub struct Jobs<S, K, V> {
    store: S,
    types: PhantomData<fn(K, V)>,
}

impl<S: Clone, K, V> Clone for Jobs<S, K, V> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            types: PhantomData,
        }
    }
}

impl<S: fmt::Debug, K, V> fmt::Debug for Jobs<S, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Jobs").field(&self.store).finish()
    }
}

/// One run of a job, as a handler gets it: a [`Run`] with its key and its value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Job<K, V> {
    /// Its key.
    pub key: K,
    /// Its value.
    pub value: V,
    run: Run,
}

impl<K, V> Deref for Job<K, V> {
    type Target = Run;

    fn deref(&self) -> &Run {
        &self.run
    }
}

/// A job as [`Jobs::look`] has found it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingJob<V> {
    /// Its value.
    pub value: V,
    /// The time of its next run, by the engine's clock.
    pub due: Timestamp,
    /// The number of its next attempt, from 1.
    pub attempt: u32,
}

impl<S, K, V> Jobs<S, K, V> {
    /// Jobs in a store.
    pub fn new(store: S) -> Self {
        Self {
            store,
            types: PhantomData,
        }
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }
}

impl<S: TaskStore, K: Key, V: Codec> Jobs<S, K, V> {
    /// A task of this key and value, due at once: for options that the calls below lack, such as a
    /// priority. [`schedule`](TaskStore::schedule) it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`], if key or value could not be read again.
    pub fn task(&self, key: &K, value: &V) -> Result<Task, StoreError> {
        Ok(Task::new(id(key)?, payload(value)?))
    }

    /// Sets a job: see [`TaskStore::schedule`]. Returns when it is due.
    ///
    /// # Errors
    ///
    /// Those of the store; [`StoreError::Refused`], if key or value could not be read again.
    pub async fn set(
        &self,
        key: &K,
        value: &V,
        due: impl Into<Due>,
    ) -> Result<Timestamp, StoreError> {
        let mut task = self.task(key, value)?;
        task.due = due.into();
        self.store.schedule(task).await
    }

    /// Sets many jobs, 10,000 in one call of the store: see [`TaskStore::schedule_many`]. Returns
    /// how many there were.
    ///
    /// # Errors
    ///
    /// Those of [`set`](Self::set). If key or value of one could not be read again, none is set;
    /// after an error of the store some may be.
    pub async fn set_many<D: Into<Due>>(
        &self,
        jobs: impl IntoIterator<Item = (K, V, D)>,
    ) -> Result<usize, StoreError> {
        let tasks = jobs.into_iter().map(|(key, value, due)| {
            let mut task = self.task(&key, &value)?;
            task.due = due.into();
            Ok(task)
        });
        let mut tasks: Vec<Task> = tasks.collect::<Result<_, StoreError>>()?;
        let count = tasks.len();
        while !tasks.is_empty() {
            let rest = tasks.split_off(TASKS_MAX.min(tasks.len()));
            self.store.schedule_many(tasks).await?;
            tasks = rest;
        }
        Ok(count)
    }

    /// Sets a job that runs at `first` and then each `period`; of the runs that are missed,
    /// `catch_up` says which are made up ([`Task::catch_up`]). This begins a new rhythm: to keep
    /// the one from before a restart, call [`ensure_periodic`](Self::ensure_periodic).
    ///
    /// # Errors
    ///
    /// Those of [`set`](Self::set).
    pub async fn set_periodic(
        &self,
        key: &K,
        value: &V,
        first: impl Into<Due>,
        period: Duration,
        catch_up: CatchUp,
    ) -> Result<Timestamp, StoreError> {
        let task = self.periodic(key, value, first.into(), (period, catch_up))?;
        self.store.schedule(task).await
    }

    /// Sets a periodic job unless its key has one with this period and `catch_up`, which keeps its
    /// value and goes on in its rhythm. Any other job of the key is replaced. Tells whether one was
    /// set. For the start of a program:
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tidewheel_tasks::{CatchUp, Jobs, MemoryStore, wait};
    ///
    /// let jobs = Jobs::<_, String, ()>::new(MemoryStore::new());
    /// let (report, hour) = ("report".to_owned(), Duration::from_secs(3600));
    /// assert!(wait(jobs.ensure_periodic(&report, &(), hour, hour, CatchUp::Skip))?);
    /// // The next start of the program.
    /// assert!(!wait(jobs.ensure_periodic(&report, &(), hour, hour, CatchUp::Skip))?);
    /// // A later version of it wants the report twice as often.
    /// assert!(wait(jobs.ensure_periodic(&report, &(), hour, hour / 2, CatchUp::Skip))?);
    /// # Ok::<(), tidewheel_tasks::StoreError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`set`](Self::set).
    pub async fn ensure_periodic(
        &self,
        key: &K,
        value: &V,
        first: impl Into<Due>,
        period: Duration,
        catch_up: CatchUp,
    ) -> Result<bool, StoreError> {
        let task = self.periodic(key, value, first.into(), (period, catch_up))?;
        self.store.ensure(task).await
    }

    fn periodic(
        &self,
        key: &K,
        value: &V,
        first: Due,
        (period, catch_up): (Duration, CatchUp),
    ) -> Result<Task, StoreError> {
        let mut task = self.task(key, value)?.every(period).catch_up(catch_up);
        task.due = first;
        Ok(task)
    }

    /// Gives a job another time: see [`TaskStore::reschedule`]. A periodic one goes on from there.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn move_to(&self, key: &K, due: impl Into<Due>) -> Result<bool, StoreError> {
        let due = due.into();
        self.store.reschedule(&id(key)?, due).await
    }

    /// Moves the key's job, or sets one with the value of `value`. Tells whether one was moved.
    ///
    /// # Errors
    ///
    /// Those of [`set`](Self::set).
    pub async fn move_or_set(
        &self,
        key: &K,
        due: impl Into<Due>,
        value: impl FnOnce() -> V,
    ) -> Result<bool, StoreError> {
        let due = due.into();
        if self.move_to(key, due).await? {
            return Ok(true);
        }
        // If somebody else sets the key here, this replaces it: as if this call had come after it.
        self.set(key, &value(), due).await?;
        Ok(false)
    }

    /// Ends a job: see [`TaskStore::cancel`]. `false` if there is none.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn remove(&self, key: &K) -> Result<bool, StoreError> {
        self.store.cancel(&id(key)?).await
    }

    /// Looks at a job that is pending or claimed.
    ///
    /// # Errors
    ///
    /// Those of the store; [`StoreError::Engine`], if its value was not written as this type.
    pub async fn look(&self, key: &K) -> Result<Option<PendingJob<V>>, StoreError> {
        let Some(pending) = self.store.look(&id(key)?).await?.filter(Look::is_ahead) else {
            return Ok(None);
        };
        let value = V::of_bytes(&pending.payload).ok_or_else(|| StoreError::engine(OTHER_VALUE))?;
        Ok(Some(PendingJob {
            value,
            due: pending.due,
            attempt: pending.attempt,
        }))
    }

    /// The key and the value of a dead letter; `None` for one that was not written as these types.
    #[must_use]
    pub fn read_letter(&self, letter: &DeadLetter) -> Option<(K, V)> {
        Some((K::of_id(&letter.id)?, V::of_bytes(&letter.payload)?))
    }

    /// Makes a dead letter a job again: see [`TaskStore::requeue`].
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn requeue(&self, key: &K, due: impl Into<Due>) -> Result<bool, StoreError> {
        let due = due.into();
        self.store.requeue(&id(key)?, due).await
    }

    /// Removes a dead letter: see [`TaskStore::remove_dead`].
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn remove_dead(&self, key: &K) -> Result<bool, StoreError> {
        self.store.remove_dead(&id(key)?).await
    }

    /// A handler of jobs as one for [`WorkerBuilder::start`](crate::WorkerBuilder::start). It gets
    /// the jobs too, and may set some.
    pub fn handler<R: IntoOutcome>(
        &self,
        handler: impl Fn(&Self, Job<K, V>) -> R + Send + Sync + 'static,
    ) -> impl Fn(&Run) -> Outcome + Send + Sync + 'static
    where
        S: Clone,
        K: 'static,
        V: 'static,
    {
        let jobs = self.clone();
        move |run| match read(run) {
            Ok(job) => handler(&jobs, job).into_outcome(),
            Err(unread) => unread,
        }
    }

    /// An async handler of jobs as one for
    /// [`WorkerBuilder::start_async`](crate::WorkerBuilder::start_async).
    pub fn async_handler<F>(
        &self,
        handler: impl Fn(Self, Job<K, V>) -> F + Send + Sync + 'static,
    ) -> impl Fn(Run) -> OutcomeFuture + Send + Sync + 'static
    where
        S: Clone,
        K: 'static,
        V: 'static,
        F: Future<Output: IntoOutcome> + Send + 'static,
    {
        let jobs = self.clone();
        move |run| {
            let future = read(&run).map(|job| handler(jobs.clone(), job));
            Box::pin(async move {
                match future {
                    Ok(future) => future.await.into_outcome(),
                    Err(unread) => unread,
                }
            })
        }
    }
}

fn id<K: Key>(key: &K) -> Result<String, StoreError> {
    key.to_id().map_err(|error| at_fault("key", error))
}

fn payload<V: Codec>(value: &V) -> Result<Vec<u8>, StoreError> {
    value.to_bytes().map_err(|error| at_fault("value", error))
}

fn at_fault(what: &str, error: StoreError) -> StoreError {
    match error {
        StoreError::Refused(why) => {
            StoreError::refused(format_args!("its {what} is at fault: {why}"))
        }
        other => other,
    }
}

/// The job of a run, or its end if it is none of these types.
fn read<K: Key, V: Codec>(run: &Run) -> Result<Job<K, V>, Outcome> {
    let key = K::of_id(run.id()).ok_or_else(|| Outcome::dead(OTHER_KEY))?;
    let value = V::of_bytes(run.payload()).ok_or_else(|| Outcome::dead(OTHER_VALUE))?;
    let run = run.clone();
    Ok(Job { key, value, run })
}
