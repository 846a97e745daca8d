//! What a journal must do, and how keys and values become bytes.

use std::time::SystemTime;

use crate::ground::error::JournalError;

/// A change to what is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a, K, V> {
    /// A task is new.
    Set {
        /// Its name: no other task has had it.
        id: u64,
        /// Its key.
        key: &'a K,
        /// Its value.
        value: &'a V,
        /// When it runs.
        due: SystemTime,
    },
    /// A task runs at another time. To be ignored if the task is not there.
    Move {
        /// Its name.
        id: u64,
        /// When it runs.
        due: SystemTime,
    },
    /// A task has run, or was removed or replaced.
    End {
        /// Its name.
        id: u64,
    },
}

/// A task that a journal holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<K, V> {
    /// Its name.
    pub id: u64,
    /// Its key.
    pub key: K,
    /// Its value.
    pub value: V,
    /// When it runs.
    pub due: SystemTime,
}

/// A store of pending tasks that survives a crash.
pub trait Journal<K, V>: Send + Sync {
    /// Appends changes in the order of the calls, and writes them to disk soon. After a crash either all changes of
    /// a call are there, or none. Returns the number to [`wait`](Self::wait) for, which never decreases from
    /// call to call.
    ///
    /// The scheduler calls it while a key is locked. It may wait for the disk, but for no handler, and must not
    /// call the scheduler.
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

    /// All tasks, in any order.
    ///
    /// # Errors
    ///
    /// When the store failed, or holds what is not a task.
    fn load(&self) -> Result<Vec<Record<K, V>>, JournalError>;

    /// A number below 2^24 that is greater at each opening of the journal. It is on disk before this returns it
    /// for the first time.
    fn epoch(&self) -> u64;
}

/// What can be written to a journal and read again.
pub trait Stored: Sized {
    /// Appends its bytes.
    fn write(&self, bytes: &mut Vec<u8>);

    /// Reads what `write` wrote; `None` for anything else.
    fn read(bytes: &[u8]) -> Option<Self>;
}

impl Stored for Vec<u8> {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(bytes.to_vec())
    }
}

impl Stored for String {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::from_utf8(bytes.to_vec()).ok()
    }
}

impl Stored for u64 {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_le_bytes)
    }
}

impl Stored for () {
    fn write(&self, _: &mut Vec<u8>) {}

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(())
    }
}
