//! A journal in memory: for jobs that need no disk, and for tests of crashes.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use super::journal::{Change, Journal, Record, Status};
use super::stored::{Stored, check};
use crate::ground::error::JournalError;
use crate::ground::panics::survive;

/// A journal in memory. Clones are the same journal.
///
/// For jobs that are to be retried and acknowledged, and need not survive the process. And for
/// tests: start a scheduler with a clone, drop the scheduler, and start the next one with another
/// clone, as after a crash.
///
/// It takes any key and value. So that a test finds what a file would refuse, make it with
/// [`like_a_file`](Self::like_a_file).
pub struct MemoryJournal<K, V> {
    state: Arc<Mutex<State<K, V>>>,
    accepts: Check<K, V>,
}

/// Checks that a key and a value may be kept.
type Check<K, V> = fn(&K, &V) -> Result<(), JournalError>;

struct State<K, V> {
    jobs: BTreeMap<u64, (K, V, Status)>,
    openings: u64,
    /// The jobs that each thread has ended and drops soon. They are not dropped within `append`,
    /// where a key is locked, and not on another thread, which may hold a lock of the user's.
    gone: HashMap<ThreadId, Vec<(K, V, Status)>>,
}

impl<K, V> State<K, V> {
    fn keep_gone(&mut self, job: Option<(K, V, Status)>) {
        if let Some(job) = job {
            let thread = thread::current().id();
            self.gone.entry(thread).or_default().push(job);
        }
    }
}

impl<K, V> MemoryJournal<K, V> {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::checking(|_, _| Ok(()))
    }

    /// An empty one that refuses what `RedbJournal` refuses: keys and values that do not pass
    /// [`Stored::check`].
    #[must_use]
    pub fn like_a_file() -> Self
    where
        K: Stored,
        V: Stored,
    {
        Self::checking(check)
    }

    fn checking(accepts: Check<K, V>) -> Self {
        let state = State {
            jobs: BTreeMap::new(),
            openings: 0,
            gone: HashMap::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            accepts,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Default for MemoryJournal<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Clone for MemoryJournal<K, V> {
    fn clone(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
            accepts: self.accepts,
        }
    }
}

impl<K, V> fmt::Debug for MemoryJournal<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jobs = self.lock().jobs.len();
        f.debug_struct("MemoryJournal")
            .field("jobs", &jobs)
            .finish()
    }
}

impl<K: Clone + Send, V: Clone + Send> Journal<K, V> for MemoryJournal<K, V> {
    fn append(&self, changes: &[Change<'_, K, V>]) -> Result<u64, JournalError> {
        // What is copied is the user's code: not under the lock.
        for change in changes {
            match *change {
                Change::Set {
                    id,
                    key,
                    value,
                    status,
                } => {
                    let job = (key.clone(), value.clone(), status.clone());
                    let mut state = self.lock();
                    let old = state.jobs.insert(id, job);
                    state.keep_gone(old);
                }
                Change::Update { id, status } => {
                    if let Some((_, _, old)) = self.lock().jobs.get_mut(&id) {
                        old.clone_from(status);
                    }
                }
                Change::End { id } => {
                    let mut state = self.lock();
                    let old = state.jobs.remove(&id);
                    state.keep_gone(old);
                }
            }
        }
        Ok(0)
    }

    fn wait(&self, _: u64) -> Result<(), JournalError> {
        self.tidy();
        Ok(())
    }

    fn tidy(&self) {
        let gone = self.lock().gone.remove(&thread::current().id());
        for job in gone.into_iter().flatten() {
            survive(|| drop(job));
        }
    }

    fn accepts(&self, key: &K, value: &V) -> Result<(), JournalError> {
        (self.accepts)(key, value)
    }

    fn load(&self) -> Result<Vec<Record<K, V>>, JournalError> {
        let mut state = self.lock();
        state.openings += 1;
        let jobs = state.jobs.iter().map(|(id, (key, value, status))| {
            Record::new(*id, key.clone(), value.clone(), status.clone())
        });
        Ok(jobs.collect())
    }

    fn epoch(&self) -> u64 {
        self.lock().openings
    }
}
