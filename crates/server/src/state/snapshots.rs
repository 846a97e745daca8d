//! The snapshot file, and what is known of the last one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

use crate::config::Settings;

/// Where snapshots are, and what became of them.
#[derive(Debug)]
pub(crate) struct Snapshots {
    pub(crate) folder: PathBuf,
    pub(crate) name: String,
    /// The wall time of the last one that was written, or of the start, in seconds.
    pub(crate) last_s: AtomicI64,
    /// The keyspace's changes that it has.
    pub(crate) changes: AtomicU64,
    /// How many were written since the start.
    pub(crate) written: AtomicU64,
    pub(crate) failed: AtomicBool,
    /// Keys that were loaded at the start.
    pub(crate) loaded: AtomicU64,
}

impl Snapshots {
    pub(crate) fn new(settings: &Settings, now_s: i64) -> Self {
        Self {
            folder: PathBuf::from(&settings.folder),
            name: settings.snapshot_file.clone(),
            last_s: AtomicI64::new(now_s),
            changes: AtomicU64::new(0),
            written: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            loaded: AtomicU64::new(0),
        }
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }
}
