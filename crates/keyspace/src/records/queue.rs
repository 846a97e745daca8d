//! The queue of records, from the threads that change data to the one that writes the log.
//!
//! All threads share it. A record enters while the shards that it has changed are locked, so the
//! records of one key stand in the order of its changes, and one that has seen another's effect
//! stands behind that. So the order of the queue is the order of everything, and needs no stamps.
//!
//! Some changes are told before they are recorded: a script publishes a message, and its record is
//! made when it ends. Such a thread *promises* a record: it takes a place in the queue, which
//! counts as a record. What stands behind it is not taken before the place is filled. So who waits
//! until all records are on disk that he finds counted waits for the promised one too.

use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use super::Encoder;
use super::waiting::Waiting;
use crate::order::{Rank, Ranked};
use crate::time::Now;

/// What was taken of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenRecords {
    /// How many records there were, from the first one on to the last that was taken.
    pub until: u64,
    /// True if they were [cut](crate::Keyspace::cut_records) behind the last one.
    pub is_cut: bool,
}

/// Records that wait to be taken.
#[derive(Debug)]
pub(crate) struct RecordQueue {
    waiting: Ranked<Waiting>,
    /// How many records there ever were. Written while `waiting` is locked.
    pushed: AtomicU64,
    /// How many of them may be taken, and how many were.
    ready: AtomicU64,
    taken: AtomicU64,
    /// Bytes that wait.
    bytes: AtomicUsize,
    /// Places that were promised, and are not filled.
    promised: AtomicUsize,
    /// True if promises count: somebody waits for records before he tells what he has heard.
    promises: AtomicBool,
    /// What one that has the whole keyspace has changed so far. Scripts within it add to that.
    open: Ranked<Option<Box<Encoder>>>,
    on: AtomicBool,
}

impl Default for RecordQueue {
    fn default() -> Self {
        Self {
            waiting: Ranked::new(Rank::Records, Waiting::default()),
            pushed: AtomicU64::new(0),
            ready: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
            promised: AtomicUsize::new(0),
            promises: AtomicBool::new(false),
            open: Ranked::new(Rank::Records, None),
            on: AtomicBool::new(false),
        }
    }
}

impl RecordQueue {
    /// Says whether changes are recorded. Nobody else is inside the keyspace.
    pub(crate) fn switch(&self, on: bool) {
        self.on.store(on, Relaxed);
    }

    /// True if changes are recorded. It stays so while the caller is inside.
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Appends a command. The shards that it has changed are locked.
    pub(crate) fn push<'w>(
        &self,
        now: &Now,
        db: u32,
        words: impl ExactSizeIterator<Item = &'w [u8]>,
    ) {
        self.append(|encoder| encoder.command(now, db, words));
    }

    /// Appends a record, or fills the place that this thread was promised.
    #[inline]
    fn append(&self, write: impl FnOnce(&mut Encoder)) {
        let mut waiting = self.waiting.lock();
        waiting.append(write);
        self.count(&waiting);
    }

    #[inline]
    fn count(&self, waiting: &Waiting) {
        self.bytes.store(waiting.bytes(), Relaxed);
        self.ready.store(waiting.ready(), Relaxed);
        self.promised.store(waiting.promised(), Relaxed);
        // Who sees a record's effect has locked its shard after this.
        self.pushed.store(waiting.pushed(), Release);
    }

    /// Says whether promises count from now on.
    pub(crate) fn set_promises(&self, count: bool) {
        self.promises.store(count, Relaxed);
    }

    /// This thread is about to tell of a change that it records later: its next record counts from
    /// now on.
    #[inline]
    pub(crate) fn promise(&self) {
        if self.promises.load(Relaxed) && self.is_on() {
            self.promise_now();
        }
    }

    #[cold]
    fn promise_now(&self) {
        let mut waiting = self.waiting.lock();
        waiting.promise();
        self.count(&waiting);
    }

    /// This thread has changed nothing that it would have to record.
    #[inline]
    pub(crate) fn release(&self) {
        if self.promised.load(Relaxed) > 0 {
            self.release_now();
        }
    }

    #[cold]
    fn release_now(&self) {
        let mut waiting = self.waiting.lock();
        waiting.release();
        self.count(&waiting);
    }

    /// How many records there ever were.
    #[inline]
    pub(crate) fn pushed(&self) -> u64 {
        self.pushed.load(Acquire)
    }

    /// Bytes that wait, apart from those that were cut off.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// True if records may be taken, apart from those that were cut off.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Relaxed) != self.taken.load(Relaxed)
    }

    /// Cuts the records off that wait. Nobody else is inside the keyspace.
    pub(crate) fn cut(&self) {
        let mut waiting = self.waiting.lock();
        waiting.cut();
        self.taken.store(waiting.ready(), Relaxed);
        self.count(&waiting);
    }

    /// Appends records that are one. The shards that they have changed are locked.
    pub(crate) fn push_group(&self, group: &Encoder) {
        match group.is_empty() {
            true => self.release(),
            false => self.append(|encoder| encoder.group(group)),
        }
    }

    /// Opens a group for one that has the whole keyspace. False if it is within another one, which
    /// has opened a group already.
    pub(crate) fn open_group(&self) -> bool {
        let mut open = self.open.lock();
        let is_new = open.is_none();
        open.get_or_insert_default();
        is_new
    }

    /// Lends the open group to a command, or takes it for good.
    pub(crate) fn take_open(&self) -> Option<Box<Encoder>> {
        self.open.lock().take()
    }

    /// Takes the open group back.
    pub(crate) fn put_open(&self, group: Option<Box<Encoder>>) {
        *self.open.lock() = group;
    }

    /// Takes all that wait, up to the first cut. Their bytes replace those of `into`.
    pub(crate) fn take(&self, into: &mut Vec<u8>) -> TakenRecords {
        let mut waiting = self.waiting.lock();
        let taken = waiting.take(into);
        if !taken.is_cut {
            self.taken.store(taken.until, Relaxed);
        }
        self.count(&waiting);
        taken
    }
}
