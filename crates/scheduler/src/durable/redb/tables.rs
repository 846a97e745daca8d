//! The file's format: its version, its tables, and how a job lies in them.
//!
//! Version 3 has a job in one row, with a checksum. Versions 1 and 2 had it in several rows, and
//! none; they are refused.

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableError};

use super::record;
use crate::durable::journal::{Record, Status};
use crate::durable::stored::Stored;
use crate::ground::error::JournalError;

/// Jobs by id: see [`record`].
pub(super) const JOBS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("jobs");
/// The table of single numbers.
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
pub(super) const EPOCH: &str = "epoch";
pub(super) const VERSION: &str = "version";

/// The version that is written.
pub(super) const CURRENT: u64 = 3;

/// The greatest number of openings: an id has that number in its upper 24 bits.
pub(super) const EPOCH_MAX: u64 = 1 << 24;

/// A change as it waits for the disk.
#[derive(Debug)]
pub(super) enum Write {
    Set { id: u64, record: Vec<u8> },
    Update { id: u64, status: Status },
    End { id: u64 },
}

/// Opens the tables of this version and counts the opening.
pub(super) fn count_opening(database: &Database) -> Result<u64, JournalError> {
    let transaction = database.begin_write().map_err(JournalError::new)?;
    let is_new = transaction
        .list_tables()
        .map_err(JournalError::new)?
        .next()
        .is_none();
    let epoch = {
        let mut meta = transaction.open_table(META).map_err(JournalError::new)?;
        let number = |name| {
            let found = meta.get(name).map_err(JournalError::new)?;
            Ok::<_, JournalError>(found.map(|number| number.value()))
        };
        let version = number(VERSION)?.unwrap_or(if is_new { CURRENT } else { 1 });
        if version != CURRENT {
            return Err(of_another_version(version));
        }
        let epoch = number(EPOCH)?.unwrap_or(0) + 1;
        if epoch >= EPOCH_MAX {
            return Err(JournalError::new(
                "the journal was opened 2^24 times: copy its jobs to a new one",
            ));
        }
        meta.insert(EPOCH, epoch).map_err(JournalError::new)?;
        meta.insert(VERSION, CURRENT).map_err(JournalError::new)?;
        transaction.open_table(JOBS).map_err(JournalError::new)?;
        epoch
    };
    transaction.commit().map_err(JournalError::new)?;
    Ok(epoch)
}

pub(super) fn of_another_version(version: u64) -> JournalError {
    let which = if version > CURRENT {
        "a newer"
    } else {
        "that older"
    };
    JournalError::new(format_args!(
        "the file has version {version}, and this program knows {CURRENT}: open it with {which} one"
    ))
}

/// Makes a new file's tables, as if the journal had been opened so often.
pub(super) fn set_epoch(database: &Database, epoch: u64) -> Result<(), JournalError> {
    let transaction = database.begin_write().map_err(JournalError::new)?;
    {
        let mut meta = transaction.open_table(META).map_err(JournalError::new)?;
        meta.insert(EPOCH, epoch).map_err(JournalError::new)?;
        meta.insert(VERSION, CURRENT).map_err(JournalError::new)?;
        transaction.open_table(JOBS).map_err(JournalError::new)?;
    }
    transaction.commit().map_err(JournalError::new)
}

/// Writes changes, all of them or none.
pub(super) fn transact(database: &Database, writes: &[Write]) -> Result<(), JournalError> {
    let transaction = database.begin_write().map_err(JournalError::new)?;
    {
        let mut jobs = transaction.open_table(JOBS).map_err(JournalError::new)?;
        for write in writes {
            match write {
                Write::Set { id, record } => {
                    jobs.insert(id, record.as_slice())
                        .map_err(JournalError::new)?;
                }
                Write::Update { id, status } => {
                    let old = jobs.get(id).map_err(JournalError::new)?;
                    let new = old.map(|old| record::with_status(*id, old.value(), status));
                    match new {
                        Some(Some(new)) => {
                            jobs.insert(id, new.as_slice()).map_err(JournalError::new)?;
                        }
                        Some(None) => return Err(damaged(&[*id])),
                        None => {}
                    }
                }
                Write::End { id } => {
                    jobs.remove(id).map_err(JournalError::new)?;
                }
            }
        }
    }
    transaction.commit().map_err(JournalError::new)
}

/// Writes a transaction without changes. A file has its last two states: after this, both have the
/// same jobs. So redb, which goes back to the other state when one is damaged, goes back behind no
/// change.
pub(super) fn seal(database: &Database) -> Result<(), JournalError> {
    let transaction = database.begin_write().map_err(JournalError::new)?;
    transaction.commit().map_err(JournalError::new)
}

/// Reads all jobs.
pub(super) fn load<K: Stored, V: Stored>(
    database: &Database,
) -> Result<Vec<Record<K, V>>, JournalError> {
    let (mut records, mut damaged_ids) = (Vec::new(), Vec::new());
    each(database, |id, bytes| {
        let Some(parts) = record::read(id, bytes) else {
            damaged_ids.push(id);
            return Ok(());
        };
        let Some(status) = parts.status() else {
            return Err(JournalError::new(format_args!(
                "job {id} has a status that this program does not know"
            )));
        };
        let (Some(key), Some(value)) = (K::read(parts.key), V::read(parts.value)) else {
            return Err(JournalError::new(format_args!(
                "job {id} was not written with these types of key and value"
            )));
        };
        records.push(Record::new(id, key, value, status));
        Ok(())
    })?;
    if damaged_ids.is_empty() {
        Ok(records)
    } else {
        Err(damaged(&damaged_ids))
    }
}

/// True if every record is as it was written.
pub(super) fn is_whole(database: &Database) -> Result<bool, JournalError> {
    let mut is_whole = true;
    each(database, |id, bytes| {
        is_whole &= record::read(id, bytes).is_some();
        Ok(())
    })?;
    Ok(is_whole)
}

/// The number of jobs.
pub(super) fn count(database: &Database) -> Result<u64, JournalError> {
    let mut count = 0;
    each(database, |_, _| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

fn each(
    database: &Database,
    mut row: impl FnMut(u64, &[u8]) -> Result<(), JournalError>,
) -> Result<(), JournalError> {
    let transaction = database.begin_read().map_err(JournalError::new)?;
    let jobs = match transaction.open_table(JOBS) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        jobs => jobs.map_err(JournalError::new)?,
    };
    for job in jobs.iter().map_err(JournalError::new)? {
        let (id, record) = job.map_err(JournalError::new)?;
        row(id.value(), record.value())?;
    }
    Ok(())
}

/// Damaged jobs that a message names.
const NAMED_MAX: usize = 10;

fn damaged(ids: &[u64]) -> JournalError {
    let named: Vec<String> = ids.iter().take(NAMED_MAX).map(u64::to_string).collect();
    let (count, named) = (ids.len(), named.join(", "));
    let more = if count > NAMED_MAX { ", …" } else { "" };
    JournalError::new(format_args!(
        "{count} of its jobs are damaged, by id {named}{more}: RedbJournal::open_salvaging keeps the others"
    ))
}
