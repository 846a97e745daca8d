//! One sync at a time for each segment, on any thread.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::folder::File;
use crate::planted::{Fault, is_planted};

/// The file of a segment that is written.
///
/// The system tells of a failure once. If two threads sync at the same time, one of them may be
/// told that all is well. So they take turns, and who comes after a failure is told of it.
#[derive(Debug)]
pub(crate) struct Shared<F> {
    pub(crate) file: F,
    has_failed: Mutex<bool>,
}

impl<F: File> Shared<F> {
    pub(crate) fn new(file: F) -> Arc<Self> {
        let has_failed = Mutex::new(false);
        Arc::new(Self { file, has_failed })
    }

    fn sync(&self) -> io::Result<()> {
        let mut has_failed = (self.has_failed.lock()).unwrap_or_else(PoisonError::into_inner);
        if *has_failed {
            return Err(io::Error::other("an earlier sync failed"));
        }
        if is_planted(Fault::SyncLeftOut) {
            return Ok(());
        }
        let synced = self.file.sync_data();
        if synced.is_err() && is_planted(Fault::SyncRetried) {
            return self.file.sync_data();
        }
        *has_failed = synced.is_err();
        synced
    }
}

/// A sync that is to be done, on any thread: see [`Log::begin_sync`](crate::Log::begin_sync).
#[derive(Debug)]
#[must_use = "nothing is synced before it runs"]
pub struct Sync<F> {
    pub(crate) shared: Arc<Shared<F>>,
    pub(crate) segment: u64,
    /// What was written of the segment when the sync was asked for.
    pub(crate) end: u64,
}

impl<F: File> Sync<F> {
    /// Waits for the disk. What comes of it belongs to [`Log::end_sync`](crate::Log::end_sync).
    pub fn run(self) -> Synced {
        Synced {
            segment: self.segment,
            end: self.end,
            result: self.shared.sync(),
        }
    }
}

/// What came of a sync.
#[derive(Debug)]
#[must_use = "the log must be told"]
pub struct Synced {
    pub(crate) segment: u64,
    pub(crate) end: u64,
    pub(crate) result: io::Result<()>,
}
