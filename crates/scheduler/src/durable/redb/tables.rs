//! The file's format: its version, its tables, and how a job lies in them.
//!
//! Version 1 had `tasks` and `due` alone, and no number. Version 2 adds `rare`, where only those jobs are that have failed,
//! repeat, wait beside their key, or are dead. So a file of version 1 is one of version 2 as it is.

use std::time::{Duration, SystemTime};

use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};

use crate::core::routine::CatchUp;
use crate::durable::journal::{Place, Record, Repeat, Status};
use crate::durable::stored::Stored;
use crate::ground::error::JournalError;

/// Keys and values of jobs, by id.
const TASKS: TableDefinition<'_, u64, (&[u8], &[u8])> = TableDefinition::new("tasks");
/// When jobs run, in microseconds since 1970, by id.
const DUE: TableDefinition<'_, u64, u64> = TableDefinition::new("due");
/// What else there is to say of a few jobs, by id: see [`encode`].
const RARE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rare");
/// What there is one of.
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const EPOCH: &str = "epoch";
const VERSION: &str = "version";

/// The version that is written.
const CURRENT: u64 = 2;

/// Openings that can be counted beside the ids of one.
const EPOCH_MAX: u64 = 1 << 24;

/// What is written of a job's status.
#[derive(Debug)]
pub(super) struct Row {
    due_us: u64,
    /// Empty for most jobs.
    rare: Vec<u8>,
}

impl Row {
    pub(super) fn of(status: &Status) -> Self {
        Self {
            due_us: micros(status.due),
            rare: encode(status),
        }
    }
}

/// A change as it waits for the disk.
#[derive(Debug)]
pub(super) enum Write {
    Set {
        id: u64,
        key: Vec<u8>,
        value: Vec<u8>,
        row: Row,
    },
    Update {
        id: u64,
        row: Row,
    },
    End {
        id: u64,
    },
}

/// Opens the tables of this version and counts the opening.
pub(super) fn count_opening(database: &Database) -> Result<u64, JournalError> {
    let transaction = database.begin_write().map_err(JournalError::new)?;
    let epoch = {
        let mut meta = transaction.open_table(META).map_err(JournalError::new)?;
        let number = |name| {
            let found = meta.get(name).map_err(JournalError::new)?;
            Ok::<_, JournalError>(found.map(|number| number.value()))
        };
        let version = number(VERSION)?.unwrap_or(1);
        if version > CURRENT {
            return Err(JournalError::new(format_args!(
                "the file has version {version}, and this program knows {CURRENT}: open it with a newer one"
            )));
        }
        let epoch = number(EPOCH)?.unwrap_or(0) + 1;
        if epoch >= EPOCH_MAX {
            return Err(JournalError::new(
                "the journal was opened 2^24 times: copy its jobs to a new one",
            ));
        }
        meta.insert(EPOCH, epoch).map_err(JournalError::new)?;
        meta.insert(VERSION, CURRENT).map_err(JournalError::new)?;
        transaction.open_table(TASKS).map_err(JournalError::new)?;
        transaction.open_table(DUE).map_err(JournalError::new)?;
        transaction.open_table(RARE).map_err(JournalError::new)?;
        epoch
    };
    transaction.commit().map_err(JournalError::new)?;
    Ok(epoch)
}

/// Writes changes, all of them or none.
pub(super) fn transact(database: &Database, writes: &[Write]) -> Result<(), JournalError> {
    let transaction = database.begin_write().map_err(JournalError::new)?;
    {
        let mut tables = Tables {
            tasks: transaction.open_table(TASKS).map_err(JournalError::new)?,
            dues: transaction.open_table(DUE).map_err(JournalError::new)?,
            rares: transaction.open_table(RARE).map_err(JournalError::new)?,
        };
        for write in writes {
            tables.write(write).map_err(JournalError::new)?;
        }
    }
    transaction.commit().map_err(JournalError::new)
}

struct Tables<'a> {
    tasks: redb::Table<'a, u64, (&'static [u8], &'static [u8])>,
    dues: redb::Table<'a, u64, u64>,
    rares: redb::Table<'a, u64, &'static [u8]>,
}

impl Tables<'_> {
    fn write(&mut self, write: &Write) -> Result<(), redb::StorageError> {
        match write {
            Write::Set {
                id,
                key,
                value,
                row,
            } => {
                self.tasks.insert(id, (key.as_slice(), value.as_slice()))?;
                self.write_row(*id, row)
            }
            Write::Update { id, row } => {
                let is_there = self.dues.get(id)?.is_some();
                if is_there {
                    self.write_row(*id, row)?;
                }
                Ok(())
            }
            Write::End { id } => {
                self.tasks.remove(id)?;
                self.dues.remove(id)?;
                self.remove_rare(*id)
            }
        }
    }

    fn write_row(&mut self, id: u64, row: &Row) -> Result<(), redb::StorageError> {
        self.dues.insert(id, row.due_us)?;
        if row.rare.is_empty() {
            return self.remove_rare(id);
        }
        self.rares.insert(id, row.rare.as_slice())?;
        Ok(())
    }

    fn remove_rare(&mut self, id: u64) -> Result<(), redb::StorageError> {
        if !self.rares.is_empty()? {
            self.rares.remove(id)?;
        }
        Ok(())
    }
}

/// Reads all jobs.
pub(super) fn load<K: Stored, V: Stored>(
    database: &Database,
) -> Result<Vec<Record<K, V>>, JournalError> {
    let transaction = database.begin_read().map_err(JournalError::new)?;
    let tasks = transaction.open_table(TASKS).map_err(JournalError::new)?;
    let dues = transaction.open_table(DUE).map_err(JournalError::new)?;
    let rares = transaction.open_table(RARE).map_err(JournalError::new)?;
    let mut records = Vec::new();
    for row in tasks.iter().map_err(JournalError::new)? {
        let (id, task) = row.map_err(JournalError::new)?;
        let (id, (key, value)) = (id.value(), task.value());
        let due = dues.get(id).map_err(JournalError::new)?;
        let due_us = due.map_or(0, |due| due.value());
        let rare = rares.get(id).map_err(JournalError::new)?;
        let rare = rare.as_ref().map_or(&[][..], |rare| rare.value());
        let Some(status) = decode(due_us, rare) else {
            return Err(JournalError::new(format_args!(
                "job {id} has a status that this program does not know"
            )));
        };
        let (Some(key), Some(value)) = (K::read(key), V::read(value)) else {
            return Err(JournalError::new(format_args!(
                "job {id} was not written with these types of key and value"
            )));
        };
        records.push(Record::new(id, key, value, status));
    }
    Ok(records)
}

/// The bytes of a status that is not the usual one: where it waits (1), attempt (4), period in milliseconds or 0 (8), what
/// is done about missed runs (1 and 4), whether there is an error (1), and its text. None for the usual one.
fn encode(status: &Status) -> Vec<u8> {
    if *status == Status::at(status.due) {
        return Vec::new();
    }
    let place: u8 = match status.place {
        Place::Keyed => 0,
        Place::Beside => 1,
        Place::Dead => 2,
    };
    let (period_ms, catch_up) = status.repeat.map_or((0, CatchUp::Skip), |repeat| {
        let ms = u64::try_from(repeat.period.as_millis()).unwrap_or(u64::MAX);
        (ms.max(1), repeat.catch_up)
    });
    let (kind, most): (u8, u32) = match catch_up {
        CatchUp::Skip => (0, 0),
        CatchUp::Burst(most) => (1, most),
        CatchUp::Delay => (2, 0),
    };
    let mut bytes = vec![place];
    bytes.extend(status.attempt.to_le_bytes());
    bytes.extend(period_ms.to_le_bytes());
    bytes.push(kind);
    bytes.extend(most.to_le_bytes());
    bytes.push(u8::from(status.error.is_some()));
    bytes.extend(status.error.as_deref().unwrap_or_default().as_bytes());
    bytes
}

fn decode(due_us: u64, mut rare: &[u8]) -> Option<Status> {
    let due = SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(due_us));
    let mut status = Status::at(due?);
    if rare.is_empty() {
        return Some(status);
    }
    status.place = match byte(&mut rare)? {
        0 => Place::Keyed,
        1 => Place::Beside,
        2 => Place::Dead,
        _ => return None,
    };
    status.attempt = u32::from_le_bytes(*front(&mut rare)?);
    let period_ms = u64::from_le_bytes(*front(&mut rare)?);
    let kind = byte(&mut rare)?;
    let most = u32::from_le_bytes(*front(&mut rare)?);
    let catch_up = match kind {
        0 => CatchUp::Skip,
        1 => CatchUp::Burst(most),
        2 => CatchUp::Delay,
        _ => return None,
    };
    let period = Duration::from_millis(period_ms);
    status.repeat = (period_ms > 0).then(|| Repeat::every(period, catch_up));
    let has_error = byte(&mut rare)? == 1;
    let text = std::str::from_utf8(rare).ok()?;
    status.error = has_error.then(|| text.to_owned());
    Some(status)
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    front(bytes).map(|[byte]| *byte)
}

/// Takes so many bytes off the front.
fn front<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (front, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(front)
}

/// Microseconds since 1970, rounded up: nothing runs early after a restart either.
fn micros(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    u64::try_from(nanos.div_ceil(1000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_comes_back_and_what_is_cut_off_does_not() {
        let due = SystemTime::UNIX_EPOCH + Duration::from_micros(7);
        assert_eq!(decode(7, &encode(&Status::at(due))), Some(Status::at(due)));
        for place in [Place::Keyed, Place::Beside, Place::Dead] {
            for catch_up in [CatchUp::Skip, CatchUp::Burst(9), CatchUp::Delay] {
                let status = Status {
                    attempt: 3,
                    error: Some("ä".to_owned()),
                    place,
                    repeat: Some(Repeat::every(Duration::from_millis(250), catch_up)),
                    ..Status::at(due)
                };
                let bytes = encode(&status);
                assert_eq!(decode(7, &bytes), Some(status));
                for end in 1..19 {
                    assert_eq!(decode(7, &bytes[..end]), None);
                }
            }
        }
        assert_eq!(decode(7, &[9; 30]), None);
    }
}
