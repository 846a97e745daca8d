//! A store for one machine: tasks in memory, and each change in a journal of the scheduler's.
//!
//! Claims are not written: when the process ends, so do all leases. Fences begin with the journal's
//! epoch, a number that grows at each opening. So a fence is greater than all that were given
//! before a crash.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::{Future, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidewheel_scheduler::{CatchUp, Change, Journal, JournalError, Place, Record, Repeat, Status};
use tidewheel_time::Clock;

use crate::shape::claim::{Claim, Verdict};
use crate::shape::dead::DeadLetter;
use crate::shape::error::StoreError;
use crate::shape::many;
use crate::shape::queue::{QueueChange, QueueRules};
use crate::shape::task::{Due, Priority, Task, check_id};
use crate::shape::terms::Terms;
use crate::shape::timestamp::Timestamp;
use crate::store::{Ask, Failure, TaskStore, Wake};
use crate::table::Table;
use crate::table::row::Row;

/// Fences of one opening of a journal.
const FENCES: u32 = 40;

/// A store in one file, for one process.
#[cfg(feature = "embedded")]
pub type EmbeddedStore = JournalStore<tidewheel_scheduler::RedbJournal>;

#[cfg(feature = "embedded")]
impl EmbeddedStore {
    /// Opens a file, or makes one.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened, or holds something else.
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self, StoreError> {
        let journal = tidewheel_scheduler::RedbJournal::open(path).map_err(StoreError::engine)?;
        Self::new(journal, tidewheel_time::SystemClock::new())
    }

    /// Opens a file as [`open`](Self::open) does; but a damaged file is set aside, and the tasks in
    /// it that are whole are kept: see
    /// [`RedbJournal::open_salvaging`](tidewheel_scheduler::RedbJournal::open_salvaging). Returns
    /// the outcome of the others.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); and when nothing of a journal is left in the file.
    pub fn open_salvaging(
        path: impl AsRef<std::path::Path>,
    ) -> Result<(Self, Option<tidewheel_scheduler::Salvaged>), StoreError> {
        let salvaged = tidewheel_scheduler::RedbJournal::open_salvaging(path);
        let (journal, salvaged) = salvaged.map_err(StoreError::engine)?;
        let store = Self::new(journal, tidewheel_time::SystemClock::new())?;
        Ok((store, salvaged))
    }
}

/// A store over a [`Journal`] of the scheduler's, for one process. A call returns when its change
/// is on disk: until then it blocks the thread.
///
/// When the journal cannot be written, as on a full disk, that call and all that follow return the
/// error. What it has not written is not known, so nothing is claimed and nothing answered by it.
/// Open the store again: it has what was written.
pub struct JournalStore<J> {
    clock: Box<dyn Clock>,
    journal: J,
    inside: Mutex<Inside>,
}

struct Inside {
    table: Table,
    /// The journal's names of what it holds: of a task, and of a dead letter.
    names: HashMap<(Arc<str>, RecordKind), u64>,
    next_name: u64,
    /// The reason why the journal could not be written. Since then the table has changes that the
    /// journal lacks.
    failed: Option<JournalError>,
    wakes: Vec<Wake>,
}

/// A journal record holds a task, a dead letter or a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RecordKind {
    Task,
    Letter,
    Note,
}

impl<J> fmt::Debug for JournalStore<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalStore").finish_non_exhaustive()
    }
}

/// A journal keeps a task as its id and its bytes: priority, the due time of its run, payload. If
/// it has terms, the first bit of the priority is set, and their length and text come before the
/// payload.
type Kept = (String, Vec<u8>);

/// The bit of a priority that says that there are terms.
const TERMS: u8 = 0x80;

impl<J: Journal<String, Vec<u8>>> JournalStore<J> {
    /// Makes a store of the journal's contents, by a clock whose wall time is the engine's time.
    ///
    /// # Errors
    ///
    /// When the journal fails, or holds what is not a task.
    pub fn new(journal: J, clock: impl Clock) -> Result<Self, StoreError> {
        let records = journal.load().map_err(StoreError::engine)?;
        let mut inside = Inside {
            table: Table::after(journal.epoch() << FENCES),
            names: HashMap::new(),
            next_name: 1,
            failed: None,
            wakes: Vec::new(),
        };
        records
            .into_iter()
            .try_for_each(|record| inside.restore(record))?;
        inside.table.take_touched();
        Ok(Self {
            clock: Box::new(clock),
            journal,
            inside: Mutex::new(inside),
        })
    }

    /// A step about an id, if it is one.
    fn step_of<T>(
        &self,
        id: &str,
        act: impl FnOnce(&mut Table, Timestamp) -> T,
    ) -> Result<T, StoreError> {
        check_id(id).and_then(|()| self.step(act))
    }

    /// Runs one step of the table, and writes its changes to disk.
    fn step<T>(&self, act: impl FnOnce(&mut Table, Timestamp) -> T) -> Result<T, StoreError> {
        let mut inside = self.lock();
        if let Some(error) = &inside.failed {
            return Err(StoreError::engine(error));
        }
        let now = Timestamp::from(self.clock.wall());
        let value = act(&mut inside.table, now);
        let appended = inside.write(&self.journal);
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

    fn wake(&self) {
        let wakes = self.lock().wakes.clone();
        wakes.iter().for_each(|wake| wake());
    }
}

impl<J> JournalStore<J> {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The change of one journal record. A record that changes gets another name, so names are never
/// used again.
struct Written {
    ends: Option<u64>,
    begins: Option<(u64, Kept, Status)>,
}

impl Inside {
    /// Appends what has changed.
    fn write(
        &mut self,
        journal: &impl Journal<String, Vec<u8>>,
    ) -> Result<Option<u64>, JournalError> {
        let touched = self.table.take_touched();
        let mut written = Vec::new();
        for id in &touched {
            let task = self.table.row(id).map(|row| kept_task(id, row));
            written.extend(self.record(id, RecordKind::Task, task));
            let letter = self.table.letter(id).map(kept_letter);
            written.extend(self.record(id, RecordKind::Letter, letter));
            let note = self.table.note(id).map(|note| kept_note(id, note));
            written.extend(self.record(id, RecordKind::Note, note));
        }
        if written.is_empty() {
            return Ok(None);
        }
        let changes: Vec<_> = written.iter().flat_map(changes).collect();
        journal.append(&changes).map(Some)
    }

    /// Gives the record of a task or letter its new name, and returns the change.
    fn record(
        &mut self,
        id: &Arc<str>,
        kind: RecordKind,
        now: Option<(Kept, Status)>,
    ) -> Option<Written> {
        let key = (Arc::clone(id), kind);
        let ends = self.names.remove(&key);
        let begins = now.map(|(kept, status)| {
            let name = self.next_name;
            self.next_name += 1;
            self.names.insert(key, name);
            (name, kept, status)
        });
        (ends.is_some() || begins.is_some()).then_some(Written { ends, begins })
    }

    /// Puts back what the journal has kept.
    fn restore(&mut self, record: Record<String, Vec<u8>>) -> Result<(), StoreError> {
        let id: Arc<str> = Arc::from(&*record.key);
        let kind = if Table::is_note(&id) {
            RecordKind::Note
        } else if record.status.place == Place::Dead {
            RecordKind::Letter
        } else {
            RecordKind::Task
        };
        self.next_name = self.next_name.max(record.id + 1);
        self.names.insert((Arc::clone(&id), kind), record.id);
        if kind == RecordKind::Note {
            self.table.restore_note(&id, &record.value);
            return Ok(());
        }
        let Some((&level, rest)) = record.value.split_first() else {
            return Err(StoreError::engine("the journal holds what is not a task"));
        };
        let Some((began, payload)) = rest.split_first_chunk() else {
            return Err(StoreError::engine("the journal holds what is not a task"));
        };
        let (due, began) = (
            record.status.due.into(),
            Timestamp(u64::from_le_bytes(*began)),
        );
        let (text, payload) = match level & TERMS {
            0 => (None, payload),
            _ => text_of(payload)?,
        };
        let every = record.status.repeat.map(|repeat| repeat.period);
        let terms = Terms::read(every, text);
        let (payload, attempt) = (payload.to_vec(), record.status.attempt);
        match kind {
            RecordKind::Task => self.table.put(
                id,
                Row {
                    due,
                    began,
                    payload,
                    priority: Priority::of_level(level & !TERMS),
                    terms,
                    attempt,
                    held: None,
                },
            ),
            RecordKind::Letter | RecordKind::Note => {
                let error = record.status.error.unwrap_or_default();
                let mut letter = DeadLetter::new(&*id, attempt, error);
                (letter.payload, letter.died, letter.terms) = (payload, due, terms);
                self.table.restore_letter(letter);
            }
        }
        Ok(())
    }
}

fn changes(written: &Written) -> impl Iterator<Item = Change<'_, String, Vec<u8>>> {
    let end = written.ends.map(|id| Change::End { id });
    let begins = written.begins.as_ref();
    let set = begins.map(|(id, (key, value), status)| Change::Set {
        id: *id,
        key,
        value,
        status,
    });
    end.into_iter().chain(set)
}

/// The text of terms, and what comes after it.
fn text_of(bytes: &[u8]) -> Result<(Option<&str>, &[u8]), StoreError> {
    let split = bytes.split_first_chunk().and_then(|(length, rest)| {
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (text, payload) = rest.split_at_checked(length)?;
        Some((Some(str::from_utf8(text).ok()?), payload))
    });
    split.ok_or_else(|| StoreError::engine("the journal holds what is not a task"))
}

fn kept(id: &str, level: u8, began: Timestamp, terms: &Terms, payload: &[u8]) -> Kept {
    let text = terms.text();
    let mut bytes = vec![level | if text.is_empty() { 0 } else { TERMS }];
    bytes.extend(began.0.to_le_bytes());
    if !text.is_empty() {
        bytes.extend(u32::try_from(text.len()).unwrap_or(0).to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes.extend(payload);
    (id.to_owned(), bytes)
}

fn kept_task(id: &str, row: &Row) -> (Kept, Status) {
    let mut status = Status::at(row.due.to_system_time());
    status.attempt = row.attempt;
    status.repeat = row
        .terms
        .every()
        .map(|period| Repeat::every(period, CatchUp::Skip));
    let (level, began) = (row.priority.level(), row.began);
    (kept(id, level, began, &row.terms, &row.payload), status)
}

fn kept_letter(letter: &DeadLetter) -> (Kept, Status) {
    let mut status = Status::at(letter.died.to_system_time());
    (status.attempt, status.place) = (letter.attempts, Place::Dead);
    status.error = Some(letter.error.clone());
    let (id, died) = (&letter.id, letter.died);
    (kept(id, 0, died, &letter.terms, &letter.payload), status)
}

fn kept_note(key: &str, bytes: Vec<u8>) -> (Kept, Status) {
    let status = Status::at(std::time::UNIX_EPOCH);
    ((key.to_owned(), bytes), status)
}

impl<J: Journal<String, Vec<u8>> + 'static> TaskStore for JournalStore<J> {
    fn schedule(&self, task: Task) -> impl Future<Output = Result<Timestamp, StoreError>> + Send {
        let kept = task
            .check()
            .and_then(|()| self.step(|table, now| table.schedule(task, now)))
            .and_then(|kept| kept);
        self.wake();
        ready(kept)
    }

    fn schedule_many(
        &self,
        tasks: Vec<Task>,
    ) -> impl Future<Output = Result<Vec<Timestamp>, StoreError>> + Send {
        let kept: Result<Result<_, _>, _> = many::check(&tasks).and_then(|()| {
            self.step(|table, now| {
                let tasks = tasks.into_iter();
                tasks.map(|task| table.schedule(task, now)).collect()
            })
        });
        self.wake();
        ready(kept.and_then(|kept| kept))
    }

    fn cancel(&self, id: &str) -> impl Future<Output = Result<bool, StoreError>> + Send {
        ready(self.step_of(id, |table, _| table.cancel(id)))
    }

    fn reschedule(
        &self,
        id: &str,
        due: Due,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        let moved = self.step_of(id, |table, now| table.reschedule(id, due, now));
        self.wake();
        ready(moved)
    }

    fn claim(&self, ask: Ask) -> impl Future<Output = Result<Vec<Claim>, StoreError>> + Send {
        ready(self.step(|table, now| table.claim(&ask, now)))
    }

    fn extend(
        &self,
        claims: &[Arc<Claim>],
        lease: Duration,
    ) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send {
        ready(self.step(|table, now| {
            let extended = claims.iter().map(|claim| table.extend(claim, lease, now));
            extended.collect()
        }))
    }

    fn done(
        &self,
        claims: &[Arc<Claim>],
    ) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send {
        let done =
            |table: &mut Table, now| claims.iter().map(|claim| table.done(claim, now)).collect();
        ready(self.step(done))
    }

    fn fail(
        &self,
        claim: &Claim,
        failure: Failure,
    ) -> impl Future<Output = Result<Verdict, StoreError>> + Send {
        ready(self.step(|table, now| table.fail(claim, failure, now)))
    }

    fn release(
        &self,
        claims: &[Arc<Claim>],
    ) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send {
        let back = |table: &mut Table, _| claims.iter().map(|claim| table.release(claim)).collect();
        let released = self.step(back);
        self.wake();
        ready(released)
    }

    fn now(&self) -> impl Future<Output = Result<Timestamp, StoreError>> + Send {
        ready(Ok(Timestamp::from(self.clock.wall())))
    }

    fn dead_letters(
        &self,
        most: usize,
    ) -> impl Future<Output = Result<Vec<DeadLetter>, StoreError>> + Send {
        ready(self.step(|table, _| table.letters(most)))
    }

    fn requeue(&self, id: &str, due: Due) -> impl Future<Output = Result<bool, StoreError>> + Send {
        let again = self.step_of(id, |table, now| table.requeue(id, due, now));
        self.wake();
        ready(again)
    }

    fn remove_dead(&self, id: &str) -> impl Future<Output = Result<bool, StoreError>> + Send {
        ready(self.step_of(id, |table, _| table.remove_dead(id)))
    }

    fn change_queue(
        &self,
        queue: &str,
        change: QueueChange,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        let changed = change
            .check(queue)
            .and_then(|()| self.step(|table, _| table.change_queue(queue, change)));
        self.wake();
        ready(changed)
    }

    fn queue_rules(
        &self,
    ) -> impl Future<Output = Result<BTreeMap<String, QueueRules>, StoreError>> + Send {
        ready(self.step(|table, _| table.queue_rules()))
    }

    fn on_arrival(&self, wake: Wake) {
        self.lock().wakes.push(wake);
    }
}
