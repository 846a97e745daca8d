//! The snapshot file, and what is known of the last one.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use tidewheel_keyspace::SnapshotCourse;
use tidewheel_log::RealFolder;

use crate::config::{SavePoints, Settings};

/// After a failure no snapshot is due for so long.
const RETRY_S: u64 = 5;

/// Where snapshots are, and what became of them.
#[derive(Debug)]
pub(crate) struct Snapshots {
    pub(crate) folder: PathBuf,
    pub(crate) name: String,
    lock_name: String,
    /// Snapshots that were begun, whether or not they were written.
    named: AtomicU64,
    /// Locked while this server may write the file: no other one does then.
    lock: Mutex<Option<File>>,
    /// Held while a new file takes the old one's place.
    pub(crate) place: Mutex<()>,
    /// The wall time of the last one that was written, or of the start, in seconds.
    pub(crate) last_s: AtomicI64,
    /// The keyspace's changes that it has.
    pub(crate) changes: AtomicU64,
    /// How many were written since the start.
    pub(crate) written: AtomicU64,
    pub(crate) failed: AtomicBool,
    /// Keys that were loaded at the start.
    pub(crate) loaded: AtomicU64,
    /// The one that is being taken in the background.
    course: Mutex<Option<Background>>,
    /// How many were begun in the background. Loops see by it that there is something to walk over.
    begun: AtomicU64,
    /// Milliseconds that the last one in the background took, 0 before the first, and the most
    /// bytes that were held for it.
    took_ms: AtomicU64,
    held: AtomicUsize,
    /// The tick at which the last one ended, or of the start.
    ended: AtomicU64,
}

/// A snapshot in the background.
#[derive(Debug, Clone)]
pub(crate) struct Background {
    pub(crate) course: SnapshotCourse,
    /// The tick at which it has begun.
    pub(crate) since: u64,
}

impl Background {
    /// Milliseconds that it has taken until now. One that took no time was there nevertheless.
    pub(crate) fn took_ms(&self, tick: u64) -> u64 {
        tick.saturating_sub(self.since).max(1)
    }
}

impl Snapshots {
    pub(crate) fn new(settings: &Settings, now_s: i64, tick: u64) -> Self {
        Self {
            folder: PathBuf::from(&settings.folder),
            name: settings.snapshot_file.clone(),
            lock_name: settings.snapshot_lock(),
            named: AtomicU64::new(0),
            lock: Mutex::default(),
            place: Mutex::default(),
            last_s: AtomicI64::new(now_s),
            changes: AtomicU64::new(0),
            written: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            loaded: AtomicU64::new(0),
            course: Mutex::default(),
            begun: AtomicU64::new(0),
            took_ms: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            ended: AtomicU64::new(tick),
        }
    }

    /// Takes the file for this server, for as long as it runs. The folder is there.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if another server has it.
    pub(crate) fn claim(&self) -> io::Result<()> {
        let mut lock = self.lock.lock();
        if lock.is_none() {
            let folder = RealFolder::new(&self.folder)?;
            let claimed = folder.lock_file(&self.lock_name);
            *lock = Some(claimed.map_err(|why| self.explain(why))?);
        }
        Ok(())
    }

    fn explain(&self, why: io::Error) -> io::Error {
        match why.kind() {
            kind @ io::ErrorKind::WouldBlock => {
                let (name, folder) = (&self.name, self.folder.display());
                let text = format!("{name} in {folder} is in use by another server");
                io::Error::new(kind, text)
            }
            _ => why,
        }
    }

    /// A name beside the file's that no other snapshot of this process has.
    pub(crate) fn name_beside(&self) -> String {
        let count = self.named.fetch_add(1, Relaxed);
        format!("{}.{}-{count}.new", self.name, std::process::id())
    }

    /// The process that writes a file of that name beside the file, or has written it.
    pub(crate) fn process_of(&self, name: &str) -> Option<u32> {
        let rest = name.strip_prefix(&self.name)?.strip_prefix('.')?;
        let (process, count) = rest.strip_suffix(".new")?.split_once('-')?;
        count.parse::<u64>().ok()?;
        process.parse().ok()
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// The one that is being taken in the background.
    pub(crate) fn background(&self) -> Option<Background> {
        self.course.lock().clone()
    }

    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Relaxed)
    }

    /// One begins in the background at a tick.
    pub(crate) fn begin(&self, course: SnapshotCourse, since: u64) {
        *self.course.lock() = Some(Background { course, since });
        self.begun.fetch_add(1, Relaxed);
    }

    /// It has ended at a tick.
    pub(crate) fn end(&self, tick: u64) {
        if self.course.lock().take().is_some() {
            self.ended.store(tick, Relaxed);
        }
    }

    /// Notes what the one in the background has taken until now.
    pub(crate) fn note_cost(&self, tick: u64) {
        if let Some(background) = self.background() {
            self.took_ms.store(background.took_ms(tick), Relaxed);
            self.held
                .store(background.course.peak_held_bytes(), Relaxed);
        }
    }

    /// Milliseconds that the last one in the background took, 0 before the first, and the most
    /// bytes that were held for it.
    pub(crate) fn cost(&self) -> (u64, usize) {
        (self.took_ms.load(Relaxed), self.held.load(Relaxed))
    }

    /// True if a snapshot is due at a tick, by these points and so many changes.
    pub(crate) fn is_due(&self, points: &SavePoints, tick: u64, changes: u64) -> bool {
        let seconds = tick.saturating_sub(self.ended.load(Relaxed)) / 1000;
        let may_try = !self.failed.load(Relaxed) || seconds >= RETRY_S;
        let changes = changes.saturating_sub(self.changes.load(Relaxed));
        may_try && points.are_reached(seconds, changes) && self.course.lock().is_none()
    }

    /// Notes one that was written: the changes that it has, and its wall time in seconds.
    pub(crate) fn note(&self, changes: u64, now_s: i64) {
        self.failed.store(false, Relaxed);
        self.changes.store(changes, Relaxed);
        self.last_s.store(now_s, Relaxed);
        self.written.fetch_add(1, Relaxed);
    }

    /// Notes one that was not written, or could not begin, and tells why.
    pub(crate) fn note_failure(&self, why: &io::Error) {
        self.failed.store(true, Relaxed);
        tracing::error!("cannot save to {}: {why}", self.path().display());
    }
}
