//! A program reads a durable scheduler by these calls, without changing it.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use equivalent::Equivalent;

use super::handle::DurableHandle;
use super::job::Job;
use super::journal::Journal;
use super::name::{Keyed, Name};
use crate::api::iter::look_at_some;
use crate::api::stats::{Stats, Window};
use crate::ground::error::{Error, JournalError};

/// A job that is pending, as [`DurableHandle::iter`] gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingJob<K, V> {
    /// Its key.
    pub key: K,
    /// Its value.
    pub value: V,
    /// The time until it runs; zero when it is due and waits for room.
    pub left: Duration,
    /// The number of its next attempt, from 1.
    pub attempt: u32,
    /// The error of the last attempt.
    pub error: Option<String>,
    /// Its period, if it repeats.
    pub period: Option<Duration>,
    /// True if it waits without its key, so that calls by key do not find it: a run of a periodic
    /// job, or one that failed when its key had a newer job.
    pub is_unkeyed: bool,
}

/// The iterator of [`DurableHandle::iter`].
pub struct DurableIter<K, V, J, S> {
    handle: DurableHandle<K, V, J, S>,
    at: (usize, u32),
    copied: Vec<PendingJob<K, V>>,
}

impl<K, V, J, S> fmt::Debug for DurableIter<K, V, J, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableIter").finish_non_exhaustive()
    }
}

impl<K, V, J, S> DurableHandle<K, V, J, S>
where
    K: Hash + Eq + Clone,
    J: Journal<K, V>,
    S: BuildHasher,
{
    /// The time until the key's pending job runs.
    #[must_use]
    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<Duration> {
        self.handle.get(&Keyed(key))
    }

    /// Looks at the value of the key's pending job: see [`Handle::peek`](crate::Handle::peek).
    pub fn peek<Q: Hash + Equivalent<K> + ?Sized, R>(
        &self,
        key: &Q,
        look: impl FnOnce(&V) -> R,
    ) -> Option<R> {
        self.handle.peek(&Keyed(key), |job| look(&job.value))
    }

    /// Jobs that are pending, those that wait for another attempt included; not the dead letters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.handle.len()
    }

    /// True if no job is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies of the pending jobs, in no order: see [`Handle::iter`](crate::Handle::iter).
    pub fn iter(&self) -> DurableIter<K, V, J, S>
    where
        V: Clone,
    {
        DurableIter {
            handle: self.clone(),
            at: (0, 0),
            copied: Vec::new(),
        }
    }

    /// The scheduler's clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.handle.now()
    }

    /// The number of jobs by due time: see [`Handle::forecast`](crate::Handle::forecast).
    #[must_use]
    pub fn forecast(&self) -> Vec<Window> {
        self.handle.forecast()
    }

    /// The statistics.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let shared = &self.shared;
        Stats {
            dead: shared.dead.len(),
            failed: shared.failed.load(Relaxed),
            retried: shared.retried.load(Relaxed),
            ..self.handle.stats()
        }
    }

    /// Hands the statistics to the `metrics` facade: see
    /// [`Handle::publish_metrics`](crate::Handle::publish_metrics).
    #[cfg(feature = "metrics")]
    pub fn publish_metrics(&self) {
        self.handle.publish(|| self.stats());
    }

    /// Waits until everything so far is on disk. Only the ends of runs may not be: every other call
    /// waits for its own change.
    ///
    /// # Errors
    ///
    /// [`Error::Journal`].
    pub fn flush(&self) -> Result<(), Error> {
        self.flush_journal().map_err(Error::Journal)
    }

    pub(super) fn flush_journal(&self) -> Result<(), JournalError> {
        self.shared.journal.flush()
    }
}

fn copy<K: Clone, V: Clone>(name: &Name<K>, job: &Job<V>, left: Duration) -> PendingJob<K, V> {
    PendingJob {
        key: name.key.clone(),
        value: job.value.clone(),
        left,
        attempt: job.attempt(),
        error: job.error().map(str::to_owned),
        period: job.repeat().map(|repeat| repeat.period),
        is_unkeyed: name.is_unkeyed(),
    }
}

impl<K, V, J, S> Iterator for DurableIter<K, V, J, S>
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher,
{
    type Item = PendingJob<K, V>;

    fn next(&mut self) -> Option<Self::Item> {
        let inner = self.handle.handle.inner();
        while self.copied.is_empty() && self.at.0 < inner.shards.count() {
            let copied = &mut self.copied;
            self.at = look_at_some(inner, self.at, |name, job, left| {
                copied.push(copy(name, job, left));
            });
        }
        self.copied.pop()
    }
}
