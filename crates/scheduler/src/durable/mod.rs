//! Tasks that survive a crash: a scheduler, and a journal of what is pending.

mod journal;
#[cfg(feature = "redb")]
mod redb;

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

use crate::builder::Builder;
use crate::error::Error;
use crate::handle::{Handle, Run};
use crate::hash::hash_of;
use crate::scheduler::{Scheduler, Stopped};
use crate::sync::{Mutex, MutexGuard, lock};

pub use self::journal::{Change, Journal, JournalError, Record, Stored};
#[cfg(feature = "redb")]
pub use self::redb::RedbJournal;

/// Locks that keep the journal's order of changes to one key the same as the scheduler's.
const STRIPES: usize = 64;

/// Tokens and ids that one opening of a journal may give, in bits; the rest counts openings.
const COUNTER_BITS: u32 = 40;

/// The value of a durable task, with its name in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journaled<V> {
    id: u64,
    value: V,
}

/// One run of a durable task, as the handler gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurableRun<K, V> {
    /// The task's key.
    pub key: K,
    /// Its value.
    pub value: V,
    /// How long after its deadline the handler was called; in a run after a crash, since the start.
    pub late: Duration,
    /// The fencing token: greater than that of every run that began before it, across crashes too. Whoever
    /// is written to by handlers can refuse a token below the greatest it has seen, and so a run of
    /// a process that is thought dead.
    pub token: u64,
}

/// A scheduler whose pending tasks survive a crash.
///
/// A call returns when what it did is on disk. A task is ended in the journal when its handler came back, or
/// panicked; so across a crash a task runs **at least once**: those whose handler had not come back, and those
/// whose end had not reached the disk, run again. Tasks that became due meanwhile run at once.
///
/// Deadlines are kept as wall time, so they are as right as the wall clock is when the process starts
/// again. Periodic tasks are not kept: set them when the program starts. Under
/// [`BackPressure::Drop`](crate::BackPressure) a dropped task comes back at the next start.
pub struct Durable<K: Hash + Eq, V, J, S: BuildHasher = foldhash::quality::RandomState> {
    scheduler: Scheduler<K, Journaled<V>, S>,
    handle: DurableHandle<K, V, J, S>,
}

/// A durable scheduler, from anywhere, its handlers among them.
pub struct DurableHandle<K, V, J, S = foldhash::quality::RandomState> {
    handle: Handle<K, Journaled<V>, S>,
    core: Arc<Core<J>>,
}

struct Core<J> {
    journal: J,
    stripes: [Mutex<()>; STRIPES],
    hasher: foldhash::quality::FixedState,
    next_id: AtomicU64,
    next_token: AtomicU64,
}

impl<J> Core<J> {
    fn stripe<Q: Hash + ?Sized>(&self, key: &Q) -> MutexGuard<'_, ()> {
        lock(&self.stripes[hash_of(&self.hasher, key) as usize % STRIPES])
    }

    /// Runs a handler and ends its task in the journal.
    fn run<K, V>(&self, run: Run<K, Journaled<V>>, handler: impl FnOnce(DurableRun<K, V>))
    where
        K: Hash + Clone,
        J: Journal<K, V>,
    {
        let Journaled { id, value } = run.value;
        let key = run.key.clone();
        let run = DurableRun {
            key: run.key,
            value,
            late: run.late,
            token: self.next_token.fetch_add(1, SeqCst),
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| handler(run)));
        {
            // After the task's own entry, which is written under the same lock.
            let _stripe = self.stripe(&key);
            // A journal that failed says so to the next caller who waits for it; the task runs again.
            drop(self.journal.append(&[Change::End { id }]));
        }
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    }
}

impl<K, V, J, S> Clone for DurableHandle<K, V, J, S> {
    fn clone(&self) -> Self {
        Self {
            handle: self.handle.clone(),
            core: Arc::clone(&self.core),
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

impl<K: Hash + Eq, V, J, S: BuildHasher> fmt::Debug for Durable<K, V, J, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Durable").field(&self.handle).finish()
    }
}

impl<K: Hash + Eq, V, J, S: BuildHasher> std::ops::Deref for Durable<K, V, J, S> {
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
    /// A task whose handler was cut off after its key had been set anew is run before this returns, on this
    /// thread: a key has but one pending task.
    ///
    /// # Errors
    ///
    /// [`Error::Journal`], and those of [`Builder::start`].
    pub fn start(
        builder: Builder<K, Journaled<V>, S>,
        journal: J,
        handler: impl Fn(&DurableHandle<K, V, J, S>, DurableRun<K, V>) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let records = journal.load().map_err(Error::Journal)?;
        let first = journal.epoch() << COUNTER_BITS;
        let core = Arc::new(Core {
            journal,
            stripes: [const { Mutex::new(()) }; STRIPES],
            hasher: foldhash::quality::FixedState::default(),
            next_id: AtomicU64::new(first),
            next_token: AtomicU64::new(first),
        });
        let handler = Arc::new(handler);
        let (runs, of_runs) = (Arc::clone(&handler), Arc::clone(&core));
        let scheduler = builder.start(move |handle, run| {
            let handle = DurableHandle {
                handle: handle.clone(),
                core: Arc::clone(&of_runs),
            };
            of_runs.run(run, |run| runs(&handle, run));
        })?;
        let handle = DurableHandle {
            handle: scheduler.handle(),
            core,
        };
        handle.restore(records, &*handler)?;
        Ok(Self { scheduler, handle })
    }

    /// Takes no more tasks and waits for handlers, `limit` at most. What is returned as pending stays in the
    /// journal, for the next start.
    pub fn stop(&self, limit: Duration) -> Stopped<K, V> {
        let stopped = self.scheduler.stop(limit);
        let plain = |(key, kept, left): (K, Journaled<V>, Duration)| (key, kept.value, left);
        Stopped {
            pending: stopped.pending.into_iter().map(plain).collect(),
            running: stopped.running,
        }
    }
}

impl<K, V, J, S> DurableHandle<K, V, J, S>
where
    K: Hash + Eq + Clone,
    J: Journal<K, V>,
    S: BuildHasher,
{
    fn restore(
        &self,
        records: Vec<Record<K, V>>,
        handler: &impl Fn(&Self, DurableRun<K, V>),
    ) -> Result<(), Error> {
        let now = self.handle.inner().clock.wall();
        let mut newest: HashMap<K, u64> = HashMap::with_capacity(records.len());
        for record in &records {
            let newest = newest.entry(record.key.clone()).or_insert(record.id);
            *newest = (*newest).max(record.id);
        }
        let mut cut_off = Vec::new();
        for Record {
            id,
            key,
            value,
            due,
        } in records
        {
            let kept = Journaled { id, value };
            if newest.get(&key) == Some(&id) {
                let delay = due.duration_since(now).unwrap_or(Duration::ZERO);
                self.handle.set(key, kept, delay)?;
            } else {
                cut_off.push((key, kept));
            }
        }
        cut_off.sort_unstable_by_key(|(_, kept)| kept.id);
        for (key, value) in cut_off {
            let run = Run {
                key,
                value,
                late: Duration::ZERO,
                missed: 0,
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                self.core.run(run, |run| handler(self, run));
            }));
            // As on a worker: a handler that panics stops nothing. It has ended in the journal.
            drop(outcome);
        }
        Ok(())
    }

    /// Sets a task: see [`Handle::set`].
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`]; [`Error::Journal`], and then the task is pending but may not survive a crash.
    pub fn set(&self, key: K, value: V, delay: Duration) -> Result<Option<V>, Error>
    where
        V: Clone,
    {
        let id = self.core.next_id.fetch_add(1, SeqCst);
        let due = self.due(delay);
        let stripe = self.core.stripe(&key);
        let kept = Journaled {
            id,
            value: value.clone(),
        };
        // First in memory: should it run before it is written, its end is written after it, since that
        // takes the same stripe.
        let old = self.handle.set(key.clone(), kept, delay)?;
        let (key, value) = (&key, &value);
        let set = Change::Set {
            id,
            key,
            value,
            due,
        };
        let written = match &old {
            Some(old) => self.core.journal.append(&[set, Change::End { id: old.id }]),
            None => self.core.journal.append(&[set]),
        };
        drop(stripe);
        self.wait(written)?;
        Ok(old.map(|old| old.value))
    }

    /// Moves a pending task: see [`Handle::move_to`].
    ///
    /// # Errors
    ///
    /// [`Error::Journal`], and then the task is moved, but a crash may bring the old time back.
    pub fn move_to(&self, key: &K, delay: Duration) -> Result<bool, Error> {
        let due = self.due(delay);
        let stripe = self.core.stripe(key);
        // Under the stripe nobody else sets, moves or removes this key: it is the same task, or none.
        let Some(id) = self.handle.peek(key, |kept| kept.id) else {
            return Ok(false);
        };
        if !self.handle.move_to(key, delay) {
            return Ok(false);
        }
        let written = self.core.journal.append(&[Change::Move { id, due }]);
        drop(stripe);
        self.wait(written)?;
        Ok(true)
    }

    /// Takes a pending task out: see [`Handle::remove`].
    ///
    /// # Errors
    ///
    /// [`Error::Journal`], and then the task is removed, but a crash may bring it back.
    pub fn remove(&self, key: &K) -> Result<Option<V>, Error> {
        let stripe = self.core.stripe(key);
        let Some(old) = self.handle.remove(key) else {
            return Ok(None);
        };
        let written = self.core.journal.append(&[Change::End { id: old.id }]);
        drop(stripe);
        self.wait(written)?;
        Ok(Some(old.value))
    }

    /// How long until the key's pending task runs.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<Duration> {
        self.handle.get(key)
    }

    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> crate::handle::Stats {
        self.handle.stats()
    }

    fn due(&self, delay: Duration) -> SystemTime {
        let now = self.handle.inner().clock.wall();
        // Farther than a wall clock can say: the task stays for as long as anybody can wait.
        now.checked_add(delay)
            .unwrap_or(now + Duration::from_secs(1 << 33))
    }

    fn wait(&self, written: Result<u64, JournalError>) -> Result<(), Error> {
        let written = written.map_err(Error::Journal)?;
        self.core.journal.wait(written).map_err(Error::Journal)
    }
}
