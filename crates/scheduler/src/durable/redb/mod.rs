//! A journal in one file: redb's transactions, many changes to each.
//!
//! Why redb and not fjall? The pending tasks are a small table that changes in place. A copy-on-write B-tree in one
//! file suits that: it needs no background compaction, and no replay after a crash, and redb's format is stable since
//! 1.0. An LSM tree writes more cheaply, which would matter if each change were a transaction. But the journal has a
//! thread of its own, which writes all changes that came during the last transaction as the next one.

mod tables;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use redb::Database;

use self::tables::{Row, Write, count_opening, load, transact};
use super::journal::{Change, Journal, Record};
use super::stored::{Stored, check};
use crate::ground::error::JournalError;
use crate::ground::panics::survive;

/// Changes that wait for the disk before further ones wait for them.
const WAITING_MAX: usize = 1 << 16;

#[derive(Debug, Default)]
struct State {
    /// Whole calls of `append`: a transaction takes all of them.
    waiting: Vec<Write>,
    /// Calls of `append` so far.
    appended: u64,
    /// How many of those calls are on disk.
    written: u64,
    failed: Option<JournalError>,
    closed: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Something waits, or the journal closes.
    work: Condvar,
    /// Something was written, or nothing will be any more.
    written: Condvar,
}

/// Jobs in one file. One process at a time may open it.
///
/// The file has a version. An older one is opened and becomes one of this version; a newer one is refused with a message.
pub struct RedbJournal {
    database: Arc<Database>,
    epoch: u64,
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

impl fmt::Debug for RedbJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbJournal")
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what waits, until the journal is closed and nothing does.
    fn write_all(&self, database: &Database) {
        let mut state = self.lock();
        loop {
            if state.waiting.is_empty() {
                if state.closed {
                    return;
                }
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let writes = std::mem::take(&mut state.waiting);
            let upto = state.appended;
            drop(state);
            // Callers wait for this. They must hear of it, even if this thread panics.
            let outcome = survive(|| transact(database, &writes));
            let outcome = outcome.unwrap_or_else(|| Err(JournalError::new("redb panicked")));
            state = self.lock();
            match outcome {
                Ok(()) => state.written = upto,
                Err(error) => {
                    state.failed = Some(error);
                    self.written.notify_all();
                    return;
                }
            }
            self.written.notify_all();
        }
    }
}

impl RedbJournal {
    /// Opens a journal, or makes one.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened, is no journal, or is open elsewhere.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        let open = || {
            let database = Database::create(path).map_err(JournalError::new)?;
            let epoch = count_opening(&database)?;
            Ok((Arc::new(database), epoch))
        };
        let (database, epoch) = unless_damaged(open)?;
        let shared = Arc::new(Shared::default());
        let (its, of_writer) = (Arc::clone(&shared), Arc::clone(&database));
        let writer = thread::Builder::new()
            .name("tidewheel-journal".to_owned())
            .spawn(move || its.write_all(&of_writer))
            .map_err(JournalError::new)?;
        Ok(Self {
            database,
            epoch,
            shared,
            writer: Some(writer),
        })
    }
}

impl Drop for RedbJournal {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
        if let Some(writer) = self.writer.take() {
            // If it could not write something, the callers that waited have got the error.
            drop(writer.join());
        }
    }
}

impl<K: Stored, V: Stored> Journal<K, V> for RedbJournal {
    fn append(&self, changes: &[Change<'_, K, V>]) -> Result<u64, JournalError> {
        let writes = changes.iter().map(encode);
        let writes: Vec<Write> = writes.collect();
        let mut state = self.shared.lock();
        while state.waiting.len() >= WAITING_MAX && state.failed.is_none() {
            state = self
                .shared
                .written
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        state.waiting.extend(writes);
        state.appended += 1;
        let appended = state.appended;
        drop(state);
        self.shared.work.notify_one();
        Ok(appended)
    }

    fn wait(&self, appended: u64) -> Result<(), JournalError> {
        let mut state = self.shared.lock();
        while state.written < appended {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            state = self
                .shared
                .written
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    fn accepts(&self, key: &K, value: &V) -> Result<(), JournalError> {
        check(key, value)
    }

    fn load(&self) -> Result<Vec<Record<K, V>>, JournalError> {
        unless_damaged(|| load(&self.database))
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }
}

/// redb panics at some damages of its file.
fn unless_damaged<R>(read: impl FnOnce() -> Result<R, JournalError>) -> Result<R, JournalError> {
    survive(read).unwrap_or_else(|| Err(JournalError::new("the file is damaged: redb panicked")))
}

fn encode<K: Stored, V: Stored>(change: &Change<'_, K, V>) -> Write {
    match *change {
        Change::Set {
            id,
            key,
            value,
            status,
        } => {
            let (mut key_bytes, mut value_bytes) = (Vec::new(), Vec::new());
            key.write(&mut key_bytes);
            value.write(&mut value_bytes);
            Write::Set {
                id,
                key: key_bytes,
                value: value_bytes,
                row: Row::of(status),
            }
        }
        Change::Update { id, status } => Write::Update {
            id,
            row: Row::of(status),
        },
        Change::End { id } => Write::End { id },
    }
}
