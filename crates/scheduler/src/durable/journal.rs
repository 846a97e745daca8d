//! `Journal` is the interface of a journal.

use std::time::{Duration, SystemTime};

use crate::core::routine::CatchUp;
use crate::ground::error::JournalError;

/// A change to what a journal holds.
///
/// A journal that gets a change that it does not know returns an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change<'a, K, V> {
    /// A job is new.
    Set {
        /// Its name: no other job has had it.
        id: u64,
        /// Its key.
        key: &'a K,
        /// Its value.
        value: &'a V,
        /// The due time, and the rest of its status.
        status: &'a Status,
    },
    /// A job was moved, has failed, is dead, or is re-queued. To be ignored if the job is not
    /// there.
    Update {
        /// Its name.
        id: u64,
        /// The status from now on.
        status: &'a Status,
    },
    /// A job is over, or was removed or replaced.
    End {
        /// Its name.
        id: u64,
    },
}

/// The part of a job that changes while it lives.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The due time; the time of death, if it is dead.
    pub due: SystemTime,
    /// The number of its next run, from 1; of its last, if it is dead.
    pub attempt: u32,
    /// The error of its last run: 1,000 bytes at most.
    pub error: Option<String>,
    /// The place in which it waits.
    pub place: Place,
    /// The period, if it is periodic.
    pub repeat: Option<Repeat>,
}

impl Status {
    /// A job that has not run yet and runs once, under its key.
    #[must_use]
    pub fn at(due: SystemTime) -> Self {
        Self {
            due,
            attempt: 1,
            error: None,
            place: Place::Keyed,
            repeat: None,
        }
    }
}

/// The place in which a job waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// Under its key. Of several, the one with the greatest id does so; the others have been begun
    /// before it was set.
    Keyed,
    /// Under its id, without its key: a run of a periodic job, or one that failed when its key had
    /// a newer job.
    Unkeyed,
    /// Among the dead letters.
    Dead,
}

/// The period of a job, and the treatment of its missed runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Repeat {
    /// The time from one run to the next.
    pub period: Duration,
    /// The treatment of missed runs.
    pub catch_up: CatchUp,
}

impl Repeat {
    /// Every `period`.
    #[must_use]
    pub fn every(period: Duration, catch_up: CatchUp) -> Self {
        Self { period, catch_up }
    }
}

/// A job that a journal holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<K, V> {
    /// Its name.
    pub id: u64,
    /// Its key.
    pub key: K,
    /// Its value.
    pub value: V,
    /// The due time, and the rest of its status.
    pub status: Status,
}

impl<K, V> Record<K, V> {
    /// A job as a journal has kept it.
    pub fn new(id: u64, key: K, value: V, status: Status) -> Self {
        Self {
            id,
            key,
            value,
            status,
        }
    }
}

/// A store of jobs that survives a crash.
pub trait Journal<K, V>: Send + Sync {
    /// Appends changes in the order of the calls, and writes them to disk soon. After a crash
    /// either all changes of a call are there, or none. Returns the number to [`wait`](Self::wait)
    /// for, which never decreases from call to call.
    ///
    /// The scheduler calls it while a key is locked. It may wait for the disk, but for no handler,
    /// and must not call the scheduler.
    ///
    /// # Errors
    ///
    /// If the store failed, now or before. Then the scheduler does not call it again.
    fn append(&self, changes: &[Change<'_, K, V>]) -> Result<u64, JournalError>;

    /// Waits until changes are on disk, those of the given call and all before it.
    ///
    /// # Errors
    ///
    /// When the store failed.
    fn wait(&self, appended: u64) -> Result<(), JournalError>;

    /// Checks that a key and a value can be written. It is called before a job is set; if it fails,
    /// nothing is changed.
    ///
    /// # Errors
    ///
    /// When they cannot. The journal has not failed then.
    fn accepts(&self, key: &K, value: &V) -> Result<(), JournalError> {
        let _ = (key, value);
        Ok(())
    }

    /// Called after changes that nobody waits for, with no key locked. A journal that keeps keys
    /// and values themselves drops those of ended jobs here and in [`wait`](Self::wait), since
    /// their `Drop` may call the scheduler.
    fn tidy(&self) {}

    /// All jobs, in any order.
    ///
    /// # Errors
    ///
    /// When the store failed, or holds what is not a job.
    fn load(&self) -> Result<Vec<Record<K, V>>, JournalError>;

    /// A number from 1 on, below 2^24, that is greater at each opening of the journal. It is on
    /// disk before this returns it for the first time.
    fn epoch(&self) -> u64;
}
