//! The file's format: its version, its tables, and how a record lies in them.
//!
//! Versions 1 to 3 were those of journals that no release had; they are refused.

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableError};

use super::record;
use crate::file::journal::{JournalError, Record};

/// Tasks and dead letters by their records' names: see [`record`].
pub(super) const TASKS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("tasks");
/// The table of single numbers.
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
pub(super) const EPOCH: &str = "epoch";
pub(super) const VERSION: &str = "version";

/// The version that is written.
pub(super) const CURRENT: u64 = 4;

/// The greatest number of openings: a fence has that number in its upper 24 bits.
pub(super) const EPOCH_MAX: u64 = 1 << 24;

/// A change as it waits for the disk.
#[derive(Debug)]
pub(super) enum Write {
    Begin { name: u64, row: Vec<u8> },
    End { name: u64 },
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
                "the file was opened 2^24 times: copy its tasks to a new one",
            ));
        }
        meta.insert(EPOCH, epoch).map_err(JournalError::new)?;
        meta.insert(VERSION, CURRENT).map_err(JournalError::new)?;
        transaction.open_table(TASKS).map_err(JournalError::new)?;
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
        transaction.open_table(TASKS).map_err(JournalError::new)?;
    }
    transaction.commit().map_err(JournalError::new)
}

/// Writes changes, all of them or none.
pub(super) fn transact(database: &Database, writes: &[Write]) -> Result<(), JournalError> {
    let transaction = database.begin_write().map_err(JournalError::new)?;
    {
        let mut tasks = transaction.open_table(TASKS).map_err(JournalError::new)?;
        for write in writes {
            match write {
                Write::Begin { name, row } => {
                    tasks
                        .insert(name, row.as_slice())
                        .map_err(JournalError::new)?;
                }
                Write::End { name } => {
                    tasks.remove(name).map_err(JournalError::new)?;
                }
            }
        }
    }
    transaction.commit().map_err(JournalError::new)
}

/// Writes a transaction without changes. A file has its last two states: after this, both have the
/// same tasks. So redb, which goes back to the other state when one is damaged, goes back behind no
/// change.
pub(super) fn seal(database: &Database) -> Result<(), JournalError> {
    let transaction = database.begin_write().map_err(JournalError::new)?;
    transaction.commit().map_err(JournalError::new)
}

/// Reads all records.
pub(super) fn load(database: &Database) -> Result<Vec<Record>, JournalError> {
    let (mut records, mut damaged_ids) = (Vec::new(), Vec::new());
    each(database, |name, row| {
        match record::read(name, row) {
            Some(record) => records.push(record),
            None => damaged_ids.push(record::id_of_damaged(row)),
        }
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
    each(database, |name, row| {
        is_whole &= record::is_whole(name, row);
        Ok(())
    })?;
    Ok(is_whole)
}

/// The number of records.
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
    mut give: impl FnMut(u64, &[u8]) -> Result<(), JournalError>,
) -> Result<(), JournalError> {
    let transaction = database.begin_read().map_err(JournalError::new)?;
    let tasks = match transaction.open_table(TASKS) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        tasks => tasks.map_err(JournalError::new)?,
    };
    for row in tasks.iter().map_err(JournalError::new)? {
        let (name, row) = row.map_err(JournalError::new)?;
        give(name.value(), row.value())?;
    }
    Ok(())
}

/// Damaged tasks that a message names.
const NAMED_MAX: usize = 10;

fn damaged(ids: &[String]) -> JournalError {
    let named = ids.iter().take(NAMED_MAX).map(|id| format!("{id:?}"));
    let (count, named) = (ids.len(), named.collect::<Vec<_>>().join(", "));
    let more = if count > NAMED_MAX { ", …" } else { "" };
    JournalError::new(format_args!(
        "{count} of its tasks are damaged, {named}{more}: FileStore::open_salvaging keeps the others"
    ))
}
