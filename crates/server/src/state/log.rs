//! The log, as loops see it.

use std::collections::VecDeque;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::mpsc::{Receiver, Sender};
use std::thread::Thread;

use parking_lot::Mutex;
use tidewheel_keyspace::Snapshot;

use super::preface::Preface;
use crate::config::Settings;
use crate::loop_handle::LoopHandle;

/// What keeps the log from taking more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Trouble {
    None = 0,
    /// There is no room, or a write has failed: it is tried again.
    NotWritten = 1,
    /// A sync has failed: only a new base helps.
    NotSynced = 2,
}

/// The number of the segment that begins where a new base is to be.
pub(crate) type Rolled = Result<u64, String>;

/// A new base that has begun: the snapshot of the moment at which the records were cut.
#[derive(Debug)]
pub(crate) struct BegunBase {
    pub(crate) snapshot: Snapshot,
    pub(crate) preface: Preface,
    /// Tells which segment begins at the cut.
    pub(crate) rolled: Receiver<Rolled>,
}

/// A request to the thread that writes the log.
#[derive(Debug)]
pub(crate) enum LogRequest {
    /// A base has begun, and is to be written.
    Write(BegunBase),
    /// The base of a segment is on disk: it is put in force. The answer says whether it was.
    Rebase(u64, Sender<Result<(), String>>),
    /// Writes and syncs what is there, and ends.
    Stop,
}

/// The log, as loops see it.
#[derive(Debug)]
pub(crate) struct LogState {
    is_on: AtomicBool,
    /// Replies wait until what they tell is on disk, until so many records are: those that were
    /// made while a setting said so, or all that will ever be.
    held: AtomicU64,
    /// Records that are on disk.
    on_disk: AtomicU64,
    /// Records that somebody waits for, whatever the policy is.
    wanted: AtomicU64,
    trouble: AtomicU8,
    /// The thread that writes sleeps until somebody wakes it.
    asleep: AtomicBool,
    thread: Mutex<Option<Thread>>,
    requests: Mutex<Option<Sender<LogRequest>>>,
    /// Who waits for the segments that begin at cuts of the records.
    cuts: Mutex<VecDeque<Sender<Rolled>>>,
    /// A new base is being written.
    pub(crate) is_rewriting: AtomicBool,
    /// Bytes behind the base that were there at the start.
    replayed: AtomicU64,
    /// Bytes behind the base, and of the base.
    pub(crate) bytes: AtomicU64,
    pub(crate) base_bytes: AtomicU64,
    /// So many attempts to write a base have failed since the last that has not.
    pub(crate) rewrite_failures: AtomicU64,
    /// Milliseconds that the last attempt took; 0 before the first.
    pub(crate) rewrite_ms: AtomicU64,
    /// The most bytes that were held for it.
    pub(crate) rewrite_held: AtomicUsize,
    /// The tick from which on a base may be tried again.
    pub(crate) rewrite_from: AtomicU64,
    pub(crate) rewrites: AtomicU64,
    /// A sync is under way beside the thread that writes.
    pub(crate) is_syncing: AtomicBool,
    /// Syncs that took so long that the next one was due.
    pub(crate) late_syncs: AtomicU64,
}

impl Default for LogState {
    fn default() -> Self {
        Self {
            is_on: AtomicBool::new(false),
            held: AtomicU64::new(0),
            on_disk: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            trouble: AtomicU8::new(Trouble::None as u8),
            asleep: AtomicBool::new(false),
            thread: Mutex::default(),
            requests: Mutex::default(),
            cuts: Mutex::default(),
            is_rewriting: AtomicBool::new(false),
            replayed: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            base_bytes: AtomicU64::new(0),
            rewrite_failures: AtomicU64::new(0),
            rewrite_ms: AtomicU64::new(0),
            rewrite_held: AtomicUsize::new(0),
            rewrite_from: AtomicU64::new(0),
            rewrites: AtomicU64::new(0),
            is_syncing: AtomicBool::new(false),
            late_syncs: AtomicU64::new(0),
        }
    }
}

impl LogState {
    /// True if changes are logged.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// The log is on from now on, and this thread writes it.
    pub(crate) fn start(&self, requests: Sender<LogRequest>) {
        *self.requests.lock() = Some(requests);
        self.is_on.store(true, Relaxed);
    }

    pub(crate) fn set_thread(&self, thread: Thread) {
        *self.thread.lock() = Some(thread);
    }

    /// True if replies wait until what they tell is on disk.
    #[inline]
    pub(crate) fn holds_replies(&self) -> bool {
        let held = self.held.load(Relaxed);
        held != 0 && held > self.on_disk()
    }

    /// Replies wait from the moment on at which a setting says so, until what was recorded by the
    /// moment at which none says so any more is on disk. Who changes settings calls this before
    /// anybody is answered.
    pub(crate) fn follow(&self, settings: &Settings, records: u64, loops: &[LoopHandle]) {
        let holds = settings.holds_replies();
        let held = self.held.load(Relaxed);
        if holds == (held == u64::MAX) {
            return;
        }
        match holds {
            true => self.held.store(u64::MAX, Relaxed),
            false => {
                self.held.store(records, Relaxed);
                self.want(records);
            }
        }
        // Those that were held are looked at once more, and what is written is synced.
        self.tell(loops);
        self.wake();
    }

    /// Replies leave at once: a fault, which must be found.
    #[cfg(test)]
    pub(crate) fn plant_no_hold(&self) {
        self.held.store(0, Relaxed);
    }

    /// Records that are on disk.
    pub(crate) fn on_disk(&self) -> u64 {
        self.on_disk.load(SeqCst)
    }

    /// So many records are on disk: loops that wait for that are told.
    pub(crate) fn set_on_disk(&self, records: u64, loops: &[LoopHandle]) {
        self.on_disk.store(records, SeqCst);
        self.tell(loops);
    }

    /// Somebody waits until so many records are on disk: they are synced soon.
    pub(crate) fn want(&self, records: u64) {
        if self.wanted.fetch_max(records, SeqCst) < records {
            self.wake();
        }
    }

    /// True if somebody waits for records that are not on disk.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(SeqCst) > self.on_disk()
    }

    /// Tells loops that wait for the log to look again.
    pub(crate) fn tell(&self, loops: &[LoopHandle]) {
        loops.iter().for_each(LoopHandle::log_moved);
    }

    pub(crate) fn trouble(&self) -> Trouble {
        match self.trouble.load(Relaxed) {
            0 => Trouble::None,
            1 => Trouble::NotWritten,
            _ => Trouble::NotSynced,
        }
    }

    pub(crate) fn set_trouble(&self, trouble: Trouble) {
        self.trouble.store(trouble as u8, Relaxed);
    }

    /// The thread is about to sleep: it looks once more whether there is something to do.
    pub(crate) fn fall_asleep(&self) {
        self.asleep.store(true, SeqCst);
    }

    pub(crate) fn awake(&self) {
        self.asleep.store(false, SeqCst);
    }

    /// Wakes the thread that writes, if it sleeps.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.asleep.load(SeqCst) {
            self.wake_now();
        }
    }

    #[cold]
    fn wake_now(&self) {
        if self.asleep.swap(false, SeqCst)
            && let Some(thread) = &*self.thread.lock()
        {
            thread.unpark();
        }
    }

    /// So many bytes behind the base were there at the start.
    pub(crate) fn replayed_bytes(&self, bytes: u64) {
        self.replayed.store(bytes, Relaxed);
        self.bytes.store(bytes, Relaxed);
    }

    /// So many bytes were written behind the base, since the start or since it is in force.
    pub(crate) fn count_bytes(&self, bytes: u64) {
        self.bytes
            .store(self.replayed.load(Relaxed) + bytes, Relaxed);
    }

    /// A new base is in force, of so many bytes.
    pub(crate) fn rebased(&self, bytes: u64) {
        self.replayed.store(0, Relaxed);
        self.base_bytes.store(bytes, Relaxed);
        self.rewrites.fetch_add(1, Relaxed);
    }

    /// Asks the thread for something. False if it is gone.
    pub(crate) fn ask(&self, request: LogRequest) -> bool {
        let requests = self.requests.lock();
        let sent = requests.as_ref().is_some_and(|to| to.send(request).is_ok());
        drop(requests);
        self.wake_now();
        sent
    }

    /// The records are about to be cut: the thread tells which segment begins there.
    pub(crate) fn expect_cut(&self, tell: Sender<Rolled>) {
        self.cuts.lock().push_back(tell);
    }

    /// A segment has begun at a cut, or not.
    pub(crate) fn rolled(&self, rolled: Rolled) {
        let waits = self.cuts.lock().pop_front();
        if let Some(waits) = waits {
            // Who has given up needs no word.
            let _ = waits.send(rolled);
        }
    }
}
