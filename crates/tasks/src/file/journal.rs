//! `Journal` is what a store of tasks in a file writes to: records by a number, many changes at
//! once. `RedbJournal` is the real one; tests have one on a disk that tears.

use std::fmt;
use std::sync::Arc;

/// A task or a dead letter, as its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The number by which it ends. No other record has had it.
    pub name: u64,
    /// The task's id, so that it can be named if the record is damaged.
    pub id: Arc<str>,
    /// What is kept of it.
    pub value: Vec<u8>,
}

/// A change to what a journal holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A record is new.
    Begin(Record),
    /// The record of this name is over.
    End(u64),
}

/// A store of records that survives a crash.
pub trait Journal: Send + Sync + 'static {
    /// Appends changes in the order of the calls, and writes them to disk soon. After a crash
    /// either all changes of a call are there, or none. Returns the number to [`wait`](Self::wait)
    /// for, which never decreases from call to call.
    ///
    /// # Errors
    ///
    /// If the journal failed, now or before. Then the store does not call it again.
    fn append(&self, changes: Vec<Change>) -> Result<u64, JournalError>;

    /// Waits until changes are on disk, those of the given call and all before it.
    ///
    /// # Errors
    ///
    /// When the journal failed.
    fn wait(&self, appended: u64) -> Result<(), JournalError>;

    /// All records, in any order.
    ///
    /// # Errors
    ///
    /// When the journal failed, or holds what is not a record.
    fn load(&self) -> Result<Vec<Record>, JournalError>;

    /// A number from 1 on, below 2^24, that is greater at each opening of the journal. It is on
    /// disk before this returns it for the first time.
    fn epoch(&self) -> u64;
}

/// A journal failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalError(String);

impl JournalError {
    /// An error with the journal's own words.
    pub fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JournalError {}
