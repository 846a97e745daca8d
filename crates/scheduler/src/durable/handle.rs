//! What a program does with a durable scheduler: each change in memory, then in the journal, then on disk.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::journal::{Change, Journal};
use super::ordered::OrderedJournal;
use super::run::{DurableRun, Journaled, JournaledHandle, JournaledRun};
use crate::api::stats::Stats;
use crate::core::hash::RandomState;
use crate::ground::error::{Error, JournalError};

/// A durable scheduler, from anywhere, its handlers among them.
pub struct DurableHandle<K, V, J, S = RandomState> {
    handle: JournaledHandle<K, V, S>,
    journal: Arc<OrderedJournal<J>>,
}

impl<K, V, J, S> Clone for DurableHandle<K, V, J, S> {
    fn clone(&self) -> Self {
        Self {
            handle: self.handle.clone(),
            journal: Arc::clone(&self.journal),
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

impl<K, V, J, S> DurableHandle<K, V, J, S> {
    pub(super) fn of(handle: JournaledHandle<K, V, S>, journal: Arc<OrderedJournal<J>>) -> Self {
        Self { handle, journal }
    }
}

impl<K, V, J, S> DurableHandle<K, V, J, S>
where
    K: Hash + Eq + Clone,
    J: Journal<K, V>,
    S: BuildHasher,
{
    /// Sets a task: see [`Handle::set`](crate::Handle::set).
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`]; [`Error::Journal`], and then the task is pending but may not survive a crash.
    pub fn set(&self, key: K, value: V, delay: Duration) -> Result<Option<V>, Error>
    where
        V: Clone,
    {
        let inner = self.handle.inner();
        // Before the key is locked: a worker that makes room may need its lock.
        inner.wait_for_room();
        let (key_kept, value_kept) = (key.clone(), value.clone());
        let stripe = self.journal.hold(&key);
        let (due, now) = (self.due(delay), inner.now());
        let kept = Journaled {
            id: stripe.next_id(),
            value: value_kept,
        };
        let id = kept.id;
        // First in memory. If the task runs before it is written, its end is still written after it, since that
        // takes the same stripe.
        let put = self.handle.put(key_kept, kept, now.deadline(delay), now);
        let Ok(old) = put else {
            // Before the task is dropped: drops are the user's code, which may call the scheduler.
            drop(stripe);
            return Err(Error::Stopped);
        };
        let set = Change::Set {
            id,
            key: &key,
            value: &value,
            due,
        };
        let written = match &old {
            Some((_, old)) => stripe.append(&[set, Change::End { id: old.id }]),
            None => stripe.append(&[set]),
        };
        drop(stripe);
        self.wait(written)?;
        Ok(old.map(|(_, old)| old.value))
    }

    /// Moves a pending task: see [`Handle::move_to`](crate::Handle::move_to).
    ///
    /// # Errors
    ///
    /// [`Error::Journal`], and then the task is moved, but a crash may bring the old time back.
    pub fn move_to(&self, key: &K, delay: Duration) -> Result<bool, Error> {
        let stripe = self.journal.hold(key);
        let due = self.due(delay);
        // Under the stripe nobody else sets, moves or removes this key: it is the same task, or none.
        let Some(id) = self.handle.peek(key, |kept| kept.id) else {
            return Ok(false);
        };
        if !self.handle.move_to(key, delay) {
            return Ok(false);
        }
        let written = stripe.append(&[Change::Move { id, due }]);
        drop(stripe);
        self.wait(written)?;
        Ok(true)
    }

    /// Takes a pending task out: see [`Handle::remove`](crate::Handle::remove).
    ///
    /// # Errors
    ///
    /// [`Error::Journal`], and then the task is removed, but a crash may bring it back.
    pub fn remove(&self, key: &K) -> Result<Option<V>, Error> {
        let stripe = self.journal.hold(key);
        // The key as well: it is dropped when the stripe is let go.
        let Some((_key, old)) = self.handle.take(key) else {
            return Ok(None);
        };
        let written = stripe.append(&[Change::End { id: old.id }]);
        drop(stripe);
        self.wait(written)?;
        Ok(Some(old.value))
    }

    /// How long until the key's pending task runs.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<Duration> {
        self.handle.get(key)
    }

    /// The scheduler's clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.handle.now()
    }

    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.handle.stats()
    }

    /// Waits until everything so far is on disk. Only the ends of tasks that ran may not be: every other call
    /// waits for its own change.
    ///
    /// # Errors
    ///
    /// [`Error::Journal`].
    pub fn flush(&self) -> Result<(), Error> {
        self.flush_journal().map_err(Error::Journal)
    }

    pub(super) fn flush_journal(&self) -> Result<(), JournalError> {
        self.journal.flush()
    }

    /// Runs a handler and ends its task in the journal.
    pub(super) fn run(
        &self,
        run: JournaledRun<K, V>,
        handler: impl FnOnce(&Self, DurableRun<K, V>),
    ) {
        let Journaled { id, value } = run.value;
        let key = run.key.clone();
        let run = DurableRun {
            key: run.key,
            value,
            late: run.late,
            token: self.journal.next_token(),
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| handler(self, run)));
        // The task's own entry was written under the same stripe, so this comes after it. If the journal has failed,
        // the next caller that waits for it gets the error, and the task runs again after a restart.
        drop(self.journal.hold(&key).append(&[Change::End { id }]));
        if let Err(panic) = outcome {
            resume_unwind(panic);
        }
    }

    fn due(&self, delay: Duration) -> SystemTime {
        let now = self.handle.inner().clock.wall();
        // Beyond the range of the wall clock: the task stays for 272 years.
        now.checked_add(delay)
            .unwrap_or(now + Duration::from_secs(1 << 33))
    }

    fn wait(&self, written: Result<u64, JournalError>) -> Result<(), Error> {
        let written = written.and_then(|appended| self.journal.wait(appended));
        written.map_err(Error::Journal)
    }
}
