//! The journal in one file: redb's transactions, many changes to each.
//!
//! Why redb and not fjall? The pending tasks are a small table that changes in place. A
//! copy-on-write B-tree in one file suits that: it needs no background compaction, and no replay
//! after a crash, and redb's format is stable since 1.0. An LSM tree writes more cheaply, which
//! would matter if each change were a transaction. But the journal has a thread of its own, which
//! writes all changes that came during the last transaction as the next one.

mod opening;
mod pages;
mod record;
pub(crate) mod salvage;
mod tables;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use redb::Database;

use self::opening::{Refused, open, survive, unless_it_panics};
use self::salvage::{Salvaged, salvage};
use self::tables::{Write, count_opening, is_whole, load, seal, transact};
use super::journal::{Change, Journal, JournalError, Record};

/// Changes that wait for the disk before further ones wait for them.
const WAITING_MAX: usize = 1 << 16;

/// The journal has nothing to write for so long before it seals the file: see [`seal`].
const CALM: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
struct State {
    /// Whole calls of `append`: a transaction takes all of them.
    waiting: Vec<Write>,
    /// Calls of `append` so far.
    appended: u64,
    /// The number of those calls that are on disk.
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

/// Records in one file.
///
/// The file has the states after its last two transactions. When the process was killed, and only
/// the last one is damaged, it looks as if it had not been written yet, and the file opens with the
/// state before. For that reason an empty transaction is written when there was nothing to write
/// for 10 ms.
pub(super) struct RedbJournal {
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
        let mut is_sealed = false;
        loop {
            if state.waiting.is_empty() && state.closed {
                return;
            }
            if state.waiting.is_empty() && is_sealed {
                let waited = self.work.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if state.waiting.is_empty() {
                let waited = self.work.wait_timeout(state, CALM);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                if state.closed {
                    continue;
                }
            }
            let writes = std::mem::take(&mut state.waiting);
            is_sealed = writes.is_empty();
            let upto = state.appended;
            drop(state);
            let write = || match is_sealed {
                true => seal(database),
                false => transact(database, &writes),
            };
            // Callers wait for this. They must hear of it, even if this thread panics.
            let outcome = survive(write);
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
    /// Opens a file, or makes one.
    pub(super) fn open(path: &Path) -> Result<Self, JournalError> {
        Self::start(path).map_err(|refused| refused.message(path))
    }

    /// Opens a file as [`open`](Self::open) does; but if it is damaged, it is set aside under
    /// another name, and the journal is a new file with the records that are whole.
    pub(super) fn open_salvaging(path: &Path) -> Result<(Self, Option<Salvaged>), JournalError> {
        let whole = Self::start(path).and_then(|journal| {
            let is_whole =
                unless_it_panics(|| is_whole(&journal.database).map_err(Refused::Error))?;
            match is_whole {
                true => Ok(journal),
                false => Err(Refused::Damaged("tasks in it are damaged".to_owned())),
            }
        });
        match whole {
            Ok(journal) => Ok((journal, None)),
            Err(Refused::Damaged(_)) => {
                let salvaged =
                    salvage(path).map_err(|error| Refused::Error(error).message(path))?;
                Ok((Self::open(path)?, Some(salvaged)))
            }
            Err(refused) => Err(refused.message(path)),
        }
    }

    fn start(path: &Path) -> Result<Self, Refused> {
        let (database, epoch) = unless_it_panics(|| {
            let database = open(path)?;
            let epoch = count_opening(&database).map_err(Refused::Error)?;
            Ok((Arc::new(database), epoch))
        })?;
        let shared = Arc::new(Shared::default());
        let (its, of_writer) = (Arc::clone(&shared), Arc::clone(&database));
        let writer = thread::Builder::new()
            .name("tidewheel-file".to_owned())
            .spawn(move || its.write_all(&of_writer))
            .map_err(|error| Refused::Error(JournalError::new(error)))?;
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

impl Journal for RedbJournal {
    fn append(&self, changes: Vec<Change>) -> Result<u64, JournalError> {
        let writes: Vec<Write> = changes.into_iter().map(encode).collect();
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

    fn load(&self) -> Result<Vec<Record>, JournalError> {
        unless_it_panics(|| load(&self.database).map_err(Refused::Error)).map_err(Refused::plain)
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }
}

fn encode(change: Change) -> Write {
    match change {
        Change::Begin(record) => Write::Begin {
            name: record.name,
            row: record::write(&record),
        },
        Change::End(name) => Write::End { name },
    }
}
