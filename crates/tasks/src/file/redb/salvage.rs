//! Salvage copies the whole records of a damaged file into a new one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use redb::{Database, TableHandle};

use super::pages::{Give, Pages, Pointer, Rows, Table};
use super::record;
use super::tables::{
    CURRENT, EPOCH, EPOCH_MAX, META, TASKS, VERSION, Write, count, of_another_version, set_epoch,
    transact,
};
use crate::file::journal::JournalError;

/// Records that are written to the new file in one transaction.
const RECORDS_AT_ONCE: usize = 4096;

/// A file that does not say how often it was opened is taken to have been opened so often: fences
/// must go on growing.
const EPOCH_UNKNOWN: u64 = 1 << 20;

/// The findings of [`FileStore::open_salvaging`](crate::FileStore::open_salvaging) in a damaged
/// file. A task and a dead letter count alike.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Salvaged {
    /// Tasks that are exactly as they were written. They are in the store.
    pub whole: u64,
    /// The ids of tasks that were found and are not as they were written, as they were found: an id
    /// may be what is damaged. They run no more. Where a page of the file holds something else,
    /// there may be some among them that never were.
    pub damaged: Vec<String>,
    /// Tasks that the file had and of which nothing was found; `None` if it is not known how many.
    pub lost: Option<u64>,
    /// The damaged file's new path.
    pub aside: PathBuf,
}

const TASK_ROWS: Rows = Rows {
    key: Some(8),
    value: None,
    is_whole: |name, row| number(name).is_some_and(|name| record::is_whole(name, row)),
};

const META_ROWS: Rows = Rows {
    key: None,
    value: Some(8),
    is_whole: |_, _| false,
};

/// The rows of the tables' tree. The roots to which they point are checked.
const TABLE_ROWS: Rows = Rows {
    key: None,
    value: None,
    is_whole: |name, table| (name == b"tasks" || name == b"meta") && Table::read(table).is_some(),
};

fn number(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_le_bytes)
}

/// The tables of a journal, and whether they are certainly where they are said to be.
struct Tables {
    meta: Option<(Table, bool)>,
    tasks: Option<(Table, bool)>,
}

impl Tables {
    fn of(pages: &mut Pages, (root, is_certain): (Pointer, bool)) -> io::Result<Self> {
        let mut found = Vec::new();
        let mut give = |name: &[u8], table: &[u8], is_certain: bool| {
            found.push((name.to_vec(), Table::read(table), is_certain));
        };
        pages.rows(root, is_certain, TABLE_ROWS, &mut give)?;
        // In the order of their names: a name may be what is damaged.
        if let [meta, tasks] = &mut *found {
            meta.0 = META.name().into();
            tasks.0 = TASKS.name().into();
        }
        let named = |wanted: &str| {
            let mut found = found.iter().filter(|(name, ..)| name == wanted.as_bytes());
            found.find_map(|(_, table, is_certain)| Some(((*table)?, *is_certain)))
        };
        let (meta, tasks) = (named(META.name()), named(TASKS.name()));
        Ok(Self { meta, tasks })
    }

    /// The tables of the state of the file that has the fewest damaged pages; of two, the newer.
    fn best(pages: &mut Pages) -> io::Result<Option<Self>> {
        let mut best = None;
        for root in pages.roots.clone() {
            pages.damaged = 0;
            let tables = Self::of(pages, root)?;
            let Some((tasks, is_certain)) = tables.tasks else {
                continue;
            };
            each(pages, &tasks, is_certain, TASK_ROWS, &mut |_, _, _| {})?;
            if best.is_none_or(|(damaged, _): (u64, _)| pages.damaged < damaged) {
                best = Some((pages.damaged, root));
            }
        }
        best.map(|(_, root)| Self::of(pages, root)).transpose()
    }
}

fn each(
    pages: &mut Pages,
    table: &Table,
    is_certain: bool,
    rows: Rows,
    give: &mut Give<'_>,
) -> io::Result<()> {
    match table.root {
        Some(root) => pages.rows(root, is_certain, rows, give),
        None => Ok(()),
    }
}

/// Puts a new file with what is whole in the place of a damaged one, and sets that aside. The
/// caller has found that nobody has it open.
pub(super) fn salvage(path: &Path) -> Result<Salvaged, JournalError> {
    let io = |error: io::Error| JournalError::new(error);
    let nothing = || JournalError::new("nothing of its tasks is left in it");
    let file = File::open(path).map_err(io)?;
    let mut pages = Pages::open(file).map_err(io)?.ok_or_else(nothing)?;
    let tables = Tables::best(&mut pages).map_err(io)?.ok_or_else(nothing)?;
    let (tasks, is_certain) = tables.tasks.as_ref().ok_or_else(nothing)?;

    let (mut epoch, mut version) = (None, None);
    if let Some((meta, is_certain)) = &tables.meta {
        let mut note = |name: &[u8], found: &[u8], is_whole: bool| {
            let number = number(found).filter(|_| is_whole);
            if name == EPOCH.as_bytes() {
                epoch = number;
            } else if name == VERSION.as_bytes() {
                version = number;
            }
        };
        each(&mut pages, meta, *is_certain, META_ROWS, &mut note).map_err(io)?;
    }
    if let Some(version) = version.filter(|version| *version != CURRENT) {
        return Err(of_another_version(version));
    }

    let sibling = sibling(path, "salvaging");
    let removed = fs::remove_file(&sibling);
    removed.or_else(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            Ok(())
        } else {
            Err(io(error))
        }
    })?;
    let database = Database::create(&sibling).map_err(JournalError::new)?;
    let mut copy = Copy {
        database: &database,
        writes: Vec::new(),
        damaged: Vec::new(),
        failed: None,
    };
    let mut give = |name: &[u8], row: &[u8], _: bool| copy.row(name, row);
    each(&mut pages, tasks, *is_certain, TASK_ROWS, &mut give).map_err(io)?;
    copy.flush();
    if let Some(error) = copy.failed {
        return Err(error);
    }
    let damaged = copy.damaged;
    let whole = count(&database)?;
    let epoch = epoch.unwrap_or(EPOCH_UNKNOWN);
    set_epoch(&database, epoch.min(EPOCH_MAX - 2))?;
    drop(database);

    let aside = set_aside(path).map_err(io)?;
    fs::rename(&sibling, path).map_err(io)?;
    let had = is_certain.then_some(tasks.rows);
    Ok(Salvaged {
        whole,
        lost: had.map(|had| had.saturating_sub(whole + damaged.len() as u64)),
        damaged,
        aside,
    })
}

/// Records on their way to the new file.
struct Copy<'a> {
    database: &'a Database,
    writes: Vec<Write>,
    damaged: Vec<String>,
    failed: Option<JournalError>,
}

impl Copy<'_> {
    fn row(&mut self, name: &[u8], row: &[u8]) {
        let Some(name) = number(name) else {
            return;
        };
        if !record::is_whole(name, row) {
            self.damaged.push(record::id_of_damaged(row));
            return;
        }
        let row = row.to_vec();
        self.writes.push(Write::Begin { name, row });
        if self.writes.len() >= RECORDS_AT_ONCE {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let writes = std::mem::take(&mut self.writes);
        if self.failed.is_none() {
            self.failed = transact(self.database, &writes).err();
        }
    }
}

/// A path next to this one: `tasks.redb.WORD` for `tasks.redb`.
fn sibling(path: &Path, word: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(word);
    PathBuf::from(name)
}

/// Gives a file a second name that no file has had. Its first name is never without a file: a
/// store that is opened then would be an empty one.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let mut number = 1u64;
    loop {
        let aside = sibling(path, &format!("damaged-{number}"));
        if !aside.try_exists()? {
            return match fs::hard_link(path, &aside) {
                Ok(()) => Ok(aside),
                Err(_) => fs::copy(path, &aside).map(|_| aside),
            };
        }
        number += 1;
    }
}
