//! A store in one file, for one process: tasks in memory, and each change in a journal.
//!
//! From the top down: this file has the steps, `kept.rs` a task as bytes, `redb/` the journal in a
//! file, `journal.rs` what a journal must do.
//!
//! Claims are not written: when the process ends, so do all leases. Fences begin with the journal's
//! epoch, a number that grows at each opening. So a fence is greater than all that were given
//! before a crash.

pub mod journal;
mod kept;
mod redb;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidewheel_time::{Clock, SystemClock};

use self::journal::{Change, Journal, JournalError, Record};
use self::kept::Kept;
use self::redb::RedbJournal;
pub use self::redb::salvage::Salvaged;
use crate::shape::error::StoreError;
use crate::shape::timestamp::Timestamp;
use crate::steps::Steps;
use crate::table::Table;
use crate::table::row::Start;
use crate::wakes::Wakes;

/// Fences of one opening of a file.
const FENCES: u32 = 40;

/// A store in one file, for one process at a time. A call returns when its change is on disk: until
/// then it blocks the thread. While a transaction is on its way to the disk, further changes are
/// collected, and go into the next one together.
///
/// A worker asks the store on one thread. If writes wait for the disk, or for a processor, for
/// longer than its lease, a run that has ended before may begin once more: at least once, as
/// everywhere.
///
/// Claims are not written: they end with the process. Whoever opens the file after a crash can
/// claim at once what was not done, with the attempts that it had. Of what was due by then, workers
/// note the start before they run it, which costs a write each. If the process ends again during
/// such a run, that counts as an attempt.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tidewheel_tasks::{FileStore, Task, TaskStore, Worker, wait};
///
/// # let path = std::env::temp_dir().join(format!("tidewheel-doc-{}.redb", std::process::id()));
/// let store = Arc::new(FileStore::open(&path)?);
/// let worker = Worker::builder(Arc::clone(&store)).start(|run| println!("{}", run.id()))?;
/// wait(store.schedule(Task::new("mail-7", "to: you").after(Duration::from_secs(60))))?;
/// // A crash here loses nothing.
/// # assert_eq!(worker.stop(Duration::from_secs(1)).left, 0);
/// # drop(store);
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// When the file cannot be written, as on a full disk, that call and all that follow return the
/// error. What it has not written is not known, so nothing is claimed and nothing answered by it.
/// Open the store again: it has what was written.
///
/// The file has a version, and a program refuses a file of another one with a message.
///
/// # A damaged file
///
/// [`open`](Self::open) compares the whole file with its checksums, and each task has a checksum of
/// its own. A file of which a byte has changed, or whose end is missing, is refused: no task runs
/// that is not exactly as it was written, and none is left out silently. Opening reads what is in
/// use of the file twice for this: about 2 and 3 seconds for a file of a gigabyte with a million
/// tasks. There is no size from which less is checked.
///
/// [`open_salvaging`](Self::open_salvaging) opens it all the same. It sets the damaged file aside
/// and says which tasks are damaged; the others run. A page of 4 KiB in which one byte is wrong is
/// put right, so that nothing is lost then. If the one page that says where the tasks are is gone,
/// or all that comes after it, nothing can be found, and it is an error.
///
/// redb panics at some damages. The first store of a process puts a hook before the process's hook
/// for panics, so that nothing is printed of those: each is the error of the call.
///
/// What was written in the last 10 ms before the process was killed may be lost silently if exactly
/// that is damaged: then it looks like a transaction that the kill had cut off.
pub struct FileStore {
    clock: Box<dyn Clock>,
    journal: Box<dyn Journal>,
    inside: Mutex<Inside>,
    wakes: Wakes,
}

struct Inside {
    table: Table,
    /// The journal's names of what it holds: of a task, of a dead letter and of a note.
    names: HashMap<(Arc<str>, Kind), u64>,
    next_name: u64,
    /// The reason why the journal could not be written. Since then the table has changes that the
    /// journal lacks.
    failed: Option<JournalError>,
}

/// A record holds a task, a dead letter or a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Task,
    Letter,
    Note,
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore").finish_non_exhaustive()
    }
}

impl FileStore {
    /// Opens a file, or makes one.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened, is damaged, holds something else, has another version, or is
    /// open elsewhere.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let journal = RedbJournal::open(path.as_ref()).map_err(StoreError::engine)?;
        Self::over(journal, SystemClock::new())
    }

    /// The same by another clock, such as a [`ManualClock`](crate::ManualClock): its wall time is
    /// the engine's time.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with_clock(path: impl AsRef<Path>, clock: impl Clock) -> Result<Self, StoreError> {
        let journal = RedbJournal::open(path.as_ref()).map_err(StoreError::engine)?;
        Self::over(journal, clock)
    }

    /// Opens a file as [`open`](Self::open) does; but a damaged file is set aside under another
    /// name, and the tasks in it that are whole are in a new file in its place. Returns the
    /// findings too, if it was damaged.
    ///
    /// It takes as much room on the disk as the tasks, and reads a damaged file up to three times.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); and when nothing of a store is left in the file, which then stays
    /// where it is.
    pub fn open_salvaging(path: impl AsRef<Path>) -> Result<(Self, Option<Salvaged>), StoreError> {
        let salvaged = RedbJournal::open_salvaging(path.as_ref());
        let (journal, salvaged) = salvaged.map_err(StoreError::engine)?;
        Ok((Self::over(journal, SystemClock::new())?, salvaged))
    }

    /// A store over any journal, by a clock whose wall time is the engine's time: for tests of
    /// crashes.
    ///
    /// # Errors
    ///
    /// When the journal fails, or holds what is not a task.
    #[doc(hidden)]
    pub fn over(journal: impl Journal, clock: impl Clock) -> Result<Self, StoreError> {
        let records = journal.load().map_err(StoreError::engine)?;
        let now = Timestamp::from(clock.wall());
        let mut inside = Inside {
            table: Table::after(journal.epoch() << FENCES),
            names: HashMap::new(),
            next_name: 1,
            failed: None,
        };
        let restored = records
            .into_iter()
            .try_for_each(|record| inside.restore(record, now));
        restored?;
        inside.table.take_touched();
        Ok(Self {
            clock: Box::new(clock),
            journal: Box::new(journal),
            inside: Mutex::new(inside),
            wakes: Wakes::default(),
        })
    }

    /// Tasks that are pending or claimed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().table.len()
    }

    /// True if the store has no tasks. It may have dead letters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Steps for FileStore {
    /// Runs one step of the table, and writes its changes to disk.
    fn step<T>(&self, act: impl FnOnce(&mut Table, Timestamp) -> T) -> Result<T, StoreError> {
        let mut inside = self.lock();
        if let Some(error) = &inside.failed {
            return Err(StoreError::engine(error));
        }
        let now = Timestamp::from(self.clock.wall());
        let value = act(&mut inside.table, now);
        let appended = inside.write(&*self.journal);
        inside.failed = appended.as_ref().err().cloned();
        drop(inside);
        let written =
            appended.and_then(|appended| appended.map_or(Ok(()), |at| self.journal.wait(at)));
        if let Err(error) = written {
            self.lock().failed = Some(error.clone());
            return Err(StoreError::engine(error));
        }
        Ok(value)
    }

    fn time(&self) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::from(self.clock.wall()))
    }

    fn wakes(&self) -> &Wakes {
        &self.wakes
    }
}

impl Inside {
    /// Appends what has changed.
    fn write(&mut self, journal: &dyn Journal) -> Result<Option<u64>, JournalError> {
        let mut changes = Vec::new();
        for id in self.table.take_touched() {
            let task = self.table.row(&id).map(kept::of_task);
            self.record(&id, Kind::Task, task, &mut changes);
            let letter = self.table.letter(&id).map(kept::of_letter);
            self.record(&id, Kind::Letter, letter, &mut changes);
            let note = self.table.note(&id).map(|note| kept::of_note(&note));
            self.record(&id, Kind::Note, note, &mut changes);
        }
        if changes.is_empty() {
            return Ok(None);
        }
        journal.append(changes).map(Some)
    }

    /// Ends the record of a task or letter, and begins its new one. A record that changes gets
    /// another name, so names are never used again.
    fn record(
        &mut self,
        id: &Arc<str>,
        kind: Kind,
        now: Option<Vec<u8>>,
        changes: &mut Vec<Change>,
    ) {
        let key = (Arc::clone(id), kind);
        changes.extend(self.names.remove(&key).map(Change::End));
        if let Some(value) = now {
            let name = self.next_name;
            self.next_name += 1;
            self.names.insert(key, name);
            let id = Arc::clone(id);
            changes.push(Change::Begin(Record { name, id, value }));
        }
    }

    /// Puts back what the journal has kept.
    fn restore(&mut self, record: Record, now: Timestamp) -> Result<(), StoreError> {
        let Record { name, id, value } = record;
        let kept = kept::read(&id, &value);
        let kept = kept.ok_or_else(|| StoreError::engine("the file holds what is not a task"))?;
        let kind = match kept {
            Kept::Task(mut row) => {
                // Claims are not written: what was due may have run when the process ended.
                if row.due <= now && row.start == Start::None {
                    row.start = Start::Doubtful;
                }
                self.table.put(Arc::clone(&id), row);
                Kind::Task
            }
            Kept::Letter(letter) => {
                self.table.restore_letter(letter);
                Kind::Letter
            }
            Kept::Note(note) => {
                self.table.restore_note(&id, &note);
                Kind::Note
            }
        };
        self.next_name = self.next_name.max(name + 1);
        self.names.insert((id, kind), name);
        Ok(())
    }
}
