//! A program changes a durable scheduler through its handle: each change is made in memory, then in
//! the journal, then on disk.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tidewheel_time::DefaultHashBuilder;

use super::job::{Job, JobHandle};
use super::journal::{Change, Journal, Repeat};
use super::name::{Keyed, Name};
use super::shared::Shared;
use crate::api::serial::Serial;
use crate::api::when::PointInTime;
use crate::core::routine::CatchUp;
use crate::ground::error::{Error, JournalError};

/// A durable scheduler, from anywhere, its handlers among them.
///
/// A call that changes something returns when the change is on disk. It waits there: async code
/// calls it where its runtime allows blocking.
pub struct DurableHandle<K, V, J, S = DefaultHashBuilder> {
    pub(super) handle: JobHandle<K, V, S>,
    pub(super) shared: Arc<Shared<K, V, J>>,
    /// A handler got it: see [`wait_for_room`](Self::wait_for_room).
    of_handler: bool,
}

impl<K, V, J, S> Clone for DurableHandle<K, V, J, S> {
    fn clone(&self) -> Self {
        Self {
            handle: self.handle.clone(),
            shared: Arc::clone(&self.shared),
            of_handler: self.of_handler,
        }
    }
}

impl<K, V, J, S> fmt::Debug for DurableHandle<K, V, J, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableHandle")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}

/// The result of a write: the number to wait for, or the journal's failure.
pub(super) type Written = Result<u64, JournalError>;

impl<K, V, J, S> DurableHandle<K, V, J, S> {
    pub(super) fn of(handle: JobHandle<K, V, S>, shared: Arc<Shared<K, V, J>>) -> Self {
        Self {
            handle,
            shared,
            of_handler: false,
        }
    }

    /// Makes the handle of a handler.
    pub(super) fn of_handler(handle: JobHandle<K, V, S>, shared: Arc<Shared<K, V, J>>) -> Self {
        Self {
            of_handler: true,
            ..Self::of(handle, shared)
        }
    }

    /// The wall time after a delay.
    pub(super) fn due(&self, delay: Duration) -> SystemTime {
        after(self.handle.inner().clock.wall(), delay)
    }
}

/// A time after another.
pub(super) fn after(time: SystemTime, delay: Duration) -> SystemTime {
    // Beyond the range of the wall clock: the job stays for 272 years.
    time.checked_add(delay)
        .unwrap_or(time + Duration::from_secs(1 << 33))
}

impl<K, V, J, S> DurableHandle<K, V, J, S>
where
    K: Hash + Eq + Clone,
    V: Clone,
    J: Journal<K, V>,
    S: BuildHasher,
{
    /// Sets a job: see [`Handle::set`](crate::Handle::set).
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`]; [`Error::Refused`], and then nothing is changed; [`Error::Journal`], and
    /// then the job is pending but may not survive a crash.
    pub fn set(&self, key: K, value: V, delay: Duration) -> Result<Option<V>, Error> {
        let (old, written) = self.put(key, value, delay, None)?;
        self.wait(written)?;
        Ok(old)
    }

    /// Sets a job that runs at a wall time or at an instant; at once if that has passed: see
    /// [`Handle::set_at`](crate::Handle::set_at).
    ///
    /// # Errors
    ///
    /// Those of [`set`](Self::set).
    pub fn set_at(&self, key: K, value: V, at: impl PointInTime) -> Result<Option<V>, Error> {
        let delay = at.delay(|| self.handle.inner().clock.wall());
        self.set(key, value, delay)
    }

    /// Sets a job that runs after `first` and then every `period`, rounded up to milliseconds. Each
    /// of its runs is a job of its own, which is retried and acknowledged by itself;
    /// [`remove`](Self::remove) ends the repetition, and leaves the runs that have begun. After a
    /// restart it goes on in its rhythm. Of the runs that were missed meanwhile, `catch_up` says
    /// how many are made up; 1,000 at most.
    ///
    /// This begins a new rhythm. To keep the one from before a restart, call
    /// [`ensure_periodic`](Self::ensure_periodic).
    ///
    /// `Clone` of key and value is called under the shard's lock: let it be cheap (`Arc`).
    ///
    /// # Errors
    ///
    /// Those of [`set`](Self::set).
    pub fn set_periodic(
        &self,
        key: K,
        value: V,
        first: Duration,
        period: Duration,
        catch_up: CatchUp,
    ) -> Result<Option<V>, Error> {
        let repeat = Repeat::rounded(period, catch_up);
        let (old, written) = self.put(key, value, first, Some(repeat))?;
        self.wait(written)?;
        Ok(old)
    }

    /// Sets a periodic job unless its key has one with this period and `catch_up`, which keeps its
    /// value and goes on in its rhythm. Any other job of the key is replaced. Tells whether one was
    /// set. For the start of a program:
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel_scheduler::{CatchUp, Durable, MemoryJournal, Scheduler};
    ///
    /// let journal = MemoryJournal::new();
    /// let start = || Durable::start(Scheduler::builder(), journal.clone(), |_, _| {});
    /// let (first, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
    ///
    /// let jobs = start()?;
    /// assert!(jobs.ensure_periodic("report", (), first, hour, CatchUp::Skip)?);
    /// drop(jobs);
    ///
    /// let jobs = start()?;
    /// assert!(!jobs.ensure_periodic("report", (), first, hour, CatchUp::Skip)?);
    /// // A later version of the program wants it twice as often.
    /// assert!(jobs.ensure_periodic("report", (), first, hour / 2, CatchUp::Skip)?);
    /// # Ok::<(), tidewheel_scheduler::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`set`](Self::set).
    pub fn ensure_periodic(
        &self,
        key: K,
        value: V,
        first: Duration,
        period: Duration,
        catch_up: CatchUp,
    ) -> Result<bool, Error> {
        let repeat = Repeat::rounded(period, catch_up);
        let keep = |job: &Job<V>| job.repeat() == Some(repeat);
        let Some((_, written)) = self.put_unless(key, value, first, Some(repeat), Some(&keep))?
        else {
            // Who has set it may not have waited for the disk yet.
            return self.flush().map(|()| false);
        };
        self.wait(written)?;
        Ok(true)
    }

    /// Sets many jobs, one after another, and waits for the disk once. Returns how many of the keys
    /// had a job.
    ///
    /// A crash may leave the first of them without the last.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel_scheduler::{Durable, MemoryJournal, Scheduler};
    ///
    /// let jobs = Durable::start(Scheduler::builder(), MemoryJournal::new(), |_, _| {})?;
    /// let hour = Duration::from_secs(3600);
    /// assert_eq!(jobs.set_many((0..10_000).map(|key| (key, "mail", hour)))?, 0);
    /// assert_eq!(jobs.len(), 10_000);
    /// # Ok::<(), tidewheel_scheduler::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`set`](Self::set). The jobs before the one that it failed at are set.
    pub fn set_many(
        &self,
        jobs: impl IntoIterator<Item = (K, V, Duration)>,
    ) -> Result<usize, Error> {
        let (mut replaced, mut last) = (0, Ok(None));
        let mut refused = Ok(());
        for (key, value, delay) in jobs {
            match self.put(key, value, delay, None) {
                Ok((old, written)) => {
                    replaced += usize::from(old.is_some());
                    last = written.map(Some);
                }
                Err(error) => refused = Err(error),
            }
            if refused.is_err() || last.is_err() {
                break;
            }
        }
        if let Some(written) = last.map_err(Error::Journal)? {
            self.wait(Ok(written))?;
        }
        refused.map(|()| replaced)
    }

    /// Moves the key's pending job, or sets one with the value of `value`, which is called with no
    /// lock held. Tells whether one was moved.
    ///
    /// # Errors
    ///
    /// Those of [`set`](Self::set).
    pub fn move_or_set(
        &self,
        key: K,
        delay: Duration,
        value: impl FnOnce() -> V,
    ) -> Result<bool, Error> {
        if self.move_to(&key, delay)? {
            return Ok(true);
        }
        // If another thread sets the key here, this replaces it: as if this call had come after it.
        self.set(key, value(), delay)?;
        Ok(false)
    }

    /// Sets a job in memory and in the journal. Returns the old one's value; does not wait for the
    /// disk.
    fn put(
        &self,
        key: K,
        value: V,
        delay: Duration,
        repeat: Option<Repeat>,
    ) -> Result<(Option<V>, Written), Error> {
        let put = self.put_unless(key, value, delay, repeat, None)?;
        Ok(put.expect("it keeps no job"))
    }

    /// The same, unless the key's pending job is one to keep. Then it returns `None`.
    #[allow(clippy::type_complexity, reason = "named once")]
    fn put_unless(
        &self,
        key: K,
        value: V,
        delay: Duration,
        repeat: Option<Repeat>,
        keep: Option<&dyn Fn(&Job<V>) -> bool>,
    ) -> Result<Option<(Option<V>, Written)>, Error> {
        let journal = &self.shared.journal;
        journal.accepts(&key, &value).map_err(Error::Refused)?;
        let inner = self.handle.inner();
        // Before the key is locked: a worker that makes room may need its lock.
        self.wait_for_room();
        let (name, value_kept) = (Name::keyed(key.clone()), value.clone());
        let stripe = journal.hold(&key);
        if keep.is_some_and(|keep| self.handle.peek(&Keyed(&key), keep) == Some(true)) {
            // The stripe first: drops of key and value may call the scheduler.
            drop(stripe);
            return Ok(None);
        }
        let (due, now) = (self.due(delay), inner.now());
        let id = stripe.next_id();
        let job = Job::new(id, value_kept);
        let deadline = now.deadline(delay);
        // First in memory. If the job runs before it is written, its end is still written after it,
        // since that takes the same stripe.
        let (status, put) = match repeat {
            None => (
                job.status(due, false),
                self.handle.put(name, job, deadline, now),
            ),
            Some(repeat) => {
                let job = job.repeating(repeat).in_phase(due, deadline);
                let rhythm = (repeat.period, repeat.catch_up);
                let status = job.status(due, false);
                (
                    status,
                    self.handle.put_periodic(name, job, deadline, rhythm, now),
                )
            }
        };
        let Ok(old) = put else {
            // Before the job is dropped: drops are the user's code, which may call the scheduler.
            drop(stripe);
            return Err(Error::Stopped);
        };
        let set = Change::Set {
            id,
            key: &key,
            value: &value,
            status: &status,
        };
        let written = match &old {
            Some((_, old)) => stripe.append(&[set, Change::End { id: old.id }]),
            None => stripe.append(&[set]),
        };
        drop(stripe);
        Ok(Some((old.map(|(_, old)| old.value), written)))
    }

    /// Waits while the queue is full, under [`BackPressure::Wait`](crate::BackPressure).
    pub(super) fn wait_for_room(&self) {
        if !self.of_handler {
            self.handle.inner().wait_for_room();
        }
    }

    pub(super) fn wait(&self, written: Written) -> Result<(), Error> {
        let written = written.and_then(|appended| self.shared.journal.wait(appended));
        written.map_err(Error::Journal)
    }
}

impl<V, J, S> DurableHandle<Serial, V, J, S>
where
    V: Clone,
    J: Journal<Serial, V>,
    S: BuildHasher,
{
    /// Sets a job that has no key of its own, and returns the one that it gets.
    ///
    /// # Errors
    ///
    /// Those of [`set`](Self::set).
    pub fn add(&self, value: V, delay: Duration) -> Result<Serial, Error> {
        let key = Serial(self.shared.journal.next_id());
        self.set(key, value, delay)?;
        Ok(key)
    }
}
