//! A journal in one file: redb's transactions, many changes to each.
//!
//! Why redb and not fjall? The pending tasks are a small table that changes in place. A copy-on-write B-tree in one
//! file suits that: it needs no background compaction, and no replay after a crash, and redb's format is stable since
//! 1.0. An LSM tree writes more cheaply, which would matter if each change were a transaction. But the journal has a
//! thread of its own, which writes all changes that came during the last transaction as the next one.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::journal::{Change, Journal, Record, Stored};
use crate::ground::error::JournalError;
use crate::ground::panics::survive;

/// Keys and values of tasks, by id.
const TASKS: TableDefinition<'_, u64, (&[u8], &[u8])> = TableDefinition::new("tasks");
/// When tasks run, in microseconds since 1970, by id.
const DUE: TableDefinition<'_, u64, u64> = TableDefinition::new("due");
/// What there is one of.
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const EPOCH: &str = "epoch";

/// Openings that can be counted beside the ids of one.
const EPOCH_MAX: u64 = 1 << 24;

/// Changes that wait for the disk before further ones wait for them.
const WAITING_MAX: usize = 1 << 16;

/// A change as it waits for the disk.
#[derive(Debug)]
enum Write {
    Set {
        id: u64,
        key: Vec<u8>,
        value: Vec<u8>,
        due_us: u64,
    },
    Move {
        id: u64,
        due_us: u64,
    },
    End {
        id: u64,
    },
}

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

/// Pending tasks in one file. One process at a time may open it.
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

fn transact(database: &Database, writes: &[Write]) -> Result<(), JournalError> {
    let transaction = database.begin_write().map_err(JournalError::new)?;
    {
        let mut tasks = transaction.open_table(TASKS).map_err(JournalError::new)?;
        let mut dues = transaction.open_table(DUE).map_err(JournalError::new)?;
        for write in writes {
            match write {
                Write::Set {
                    id,
                    key,
                    value,
                    due_us,
                } => {
                    tasks
                        .insert(id, (key.as_slice(), value.as_slice()))
                        .map_err(JournalError::new)?;
                    dues.insert(id, due_us).map_err(JournalError::new)?;
                }
                Write::Move { id, due_us } => {
                    let is_there = dues.get(id).map_err(JournalError::new)?.is_some();
                    if is_there {
                        dues.insert(id, due_us).map_err(JournalError::new)?;
                    }
                }
                Write::End { id } => {
                    tasks.remove(id).map_err(JournalError::new)?;
                    dues.remove(id).map_err(JournalError::new)?;
                }
            }
        }
    }
    transaction.commit().map_err(JournalError::new)
}

/// Opens the tables and counts the opening.
fn count_opening(database: &Database) -> Result<u64, JournalError> {
    let transaction = database.begin_write().map_err(JournalError::new)?;
    let epoch = {
        transaction.open_table(TASKS).map_err(JournalError::new)?;
        transaction.open_table(DUE).map_err(JournalError::new)?;
        let mut meta = transaction.open_table(META).map_err(JournalError::new)?;
        let last = meta
            .get(EPOCH)
            .map_err(JournalError::new)?
            .map_or(0, |epoch| epoch.value());
        let epoch = last + 1;
        if epoch >= EPOCH_MAX {
            return Err(JournalError::new(
                "the journal was opened 2^24 times: copy its tasks to a new one",
            ));
        }
        meta.insert(EPOCH, epoch).map_err(JournalError::new)?;
        epoch
    };
    transaction.commit().map_err(JournalError::new)?;
    Ok(epoch)
}

impl RedbJournal {
    /// Opens a journal, or makes one.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened, is no journal, or is open elsewhere.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        let database = Arc::new(Database::create(path).map_err(JournalError::new)?);
        let epoch = count_opening(&database)?;
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

    fn load(&self) -> Result<Vec<Record<K, V>>, JournalError> {
        let transaction = self.database.begin_read().map_err(JournalError::new)?;
        let tasks = transaction.open_table(TASKS).map_err(JournalError::new)?;
        let dues = transaction.open_table(DUE).map_err(JournalError::new)?;
        let mut records = Vec::new();
        for row in tasks.iter().map_err(JournalError::new)? {
            let (id, task) = row.map_err(JournalError::new)?;
            let (key, value) = task.value();
            let due_us = dues
                .get(id.value())
                .map_err(JournalError::new)?
                .map_or(0, |due| due.value());
            let (Some(key), Some(value)) = (K::read(key), V::read(value)) else {
                return Err(JournalError::new(format!(
                    "task {} was not written with these types of key and value",
                    id.value()
                )));
            };
            records.push(Record {
                id: id.value(),
                key,
                value,
                due: SystemTime::UNIX_EPOCH + Duration::from_micros(due_us),
            });
        }
        Ok(records)
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }
}

fn encode<K: Stored, V: Stored>(change: &Change<'_, K, V>) -> Write {
    match *change {
        Change::Set {
            id,
            key,
            value,
            due,
        } => {
            let (mut key_bytes, mut value_bytes) = (Vec::new(), Vec::new());
            key.write(&mut key_bytes);
            value.write(&mut value_bytes);
            Write::Set {
                id,
                key: key_bytes,
                value: value_bytes,
                due_us: micros(due),
            }
        }
        Change::Move { id, due } => Write::Move {
            id,
            due_us: micros(due),
        },
        Change::End { id } => Write::End { id },
    }
}

/// Microseconds since 1970, rounded up: nothing runs early after a restart either.
fn micros(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    u64::try_from(nanos.div_ceil(1000)).unwrap_or(u64::MAX)
}
