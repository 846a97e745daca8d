//! A store's file is opened, or refused with a reason.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;
use std::thread;

use redb::{Database, DatabaseError, StorageError};

use crate::file::journal::JournalError;

/// The reason why a file is not opened.
pub(super) enum Refused {
    /// The file is not as it was written.
    Damaged(String),
    /// It never was a store.
    Foreign,
    /// Another process has it open, or this one.
    Busy,
    Error(JournalError),
}

impl Refused {
    /// The error of a refused file: what is wrong, and what to do.
    pub(super) fn message(self, path: &Path) -> JournalError {
        let path = path.display();
        match self {
            Self::Damaged(why) => JournalError::new(format_args!(
                "{path} is damaged ({why}): FileStore::open_salvaging keeps the tasks that are whole"
            )),
            Self::Foreign => JournalError::new(format_args!(
                "{path} is no file of tasks: another program's?"
            )),
            Self::Busy => JournalError::new(format_args!(
                "{path} is open already, and one store at a time may have it: stop the other program, drop the other \
                 store of this one, or use another file"
            )),
            Self::Error(error) => JournalError::new(format_args!("{path}: {error}")),
        }
    }

    /// The same of a file that is open.
    pub(super) fn plain(self) -> JournalError {
        match self {
            Self::Error(error) => error,
            Self::Damaged(why) => JournalError::new(format_args!("the file is damaged ({why})")),
            Self::Foreign => JournalError::new("it is no file of tasks"),
            Self::Busy => JournalError::new("the file is open already"),
        }
    }
}

impl From<DatabaseError> for Refused {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::DatabaseAlreadyOpen => Self::Busy,
            DatabaseError::Storage(StorageError::Corrupted(_))
            | DatabaseError::UpgradeRequired(_) => Self::Damaged(error.to_string()),
            DatabaseError::Storage(StorageError::Io(error)) => Self::from(error),
            error => Self::Error(JournalError::new(error)),
        }
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // Its end is missing, or the bytes say that it has another one.
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput => Self::Damaged(error.to_string()),
            _ => Self::Error(JournalError::new(error)),
        }
    }
}

/// Opens a file or makes one, and compares what is in use of it with its checksums.
pub(super) fn open(path: &Path) -> Result<Database, Refused> {
    if is_foreign(path)? {
        return Err(Refused::Foreign);
    }
    let mut database = Database::create(path)?;
    // What was not as it should be and could be put right has nothing to do with tasks: pages in
    // use were taken for free ones.
    database.check_integrity()?;
    Ok(database)
}

/// The bytes with which a file of redb begins.
const MAGIC: [u8; 9] = *b"redb\x1a\x0a\xa9\x0d\x0a";

/// Returns whether there is something that is no regular file, or one whose beginning has less than
/// half of what redb writes there.
fn is_foreign(path: &Path) -> io::Result<bool> {
    let metadata = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        metadata => metadata?,
    };
    if !metadata.is_file() {
        return Ok(true);
    }
    let mut begins = Vec::new();
    File::open(path)?
        .take(MAGIC.len() as u64)
        .read_to_end(&mut begins)?;
    let same = begins.iter().zip(MAGIC).filter(|(is, was)| **is == *was);
    Ok(!begins.is_empty() && 2 * same.count() < MAGIC.len())
}

/// redb panics at some damages of its file.
pub(super) fn unless_it_panics<R>(read: impl FnOnce() -> Result<R, Refused>) -> Result<R, Refused> {
    survive(read).unwrap_or_else(|| Err(Refused::Damaged("redb panicked".to_owned())))
}

/// Calls redb, which panics at some damages of its file; `None` when it has. The caller has an
/// error to tell: the panic's text is not printed.
pub(super) fn survive<R>(body: impl FnOnce() -> R) -> Option<R> {
    hush();
    let before = IN_REDB.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(body));
    IN_REDB.set(before);
    outcome.ok()
}

thread_local! {
    /// True while this thread is in redb, and a panic of it is survived.
    static IN_REDB: Cell<bool> = const { Cell::new(false) };
}

/// Puts a hook before the process's own for panics, once: that is left out for those of redb that
/// are survived, and called for all others.
fn hush() {
    static HUSHED: Once = Once::new();
    // A thread that panics may not change the hook.
    if thread::panicking() {
        return;
    }
    HUSHED.call_once(|| {
        let own = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IN_REDB.get() {
                own(panic);
            }
        }));
    });
}
