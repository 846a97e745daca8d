//! The queue of records, from the threads that change data to the one that writes the log.
//!
//! All threads share it. A record enters while the shards that it has changed are locked, so the
//! records of one key stand in the order of its changes, and one that has seen another's effect
//! stands behind that. So the order of the queue is the order of everything, and needs no stamps.

use std::collections::VecDeque;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use super::Encoder;
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

#[derive(Debug, Default)]
struct Waiting {
    last: Encoder,
    /// What was cut off before: its bytes, and how many records there were by then.
    cut: VecDeque<(Vec<u8>, u64)>,
}

/// Records that wait to be taken.
#[derive(Debug)]
pub(crate) struct RecordQueue {
    waiting: Ranked<Waiting>,
    /// How many records there ever were. Written while `waiting` is locked.
    pushed: AtomicU64,
    /// Bytes that wait.
    bytes: AtomicUsize,
    /// What one that has the whole keyspace has changed so far. Scripts within it add to that.
    open: Ranked<Option<Box<Encoder>>>,
    on: AtomicBool,
}

impl Default for RecordQueue {
    fn default() -> Self {
        Self {
            waiting: Ranked::new(Rank::Records, Waiting::default()),
            pushed: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
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
        let mut waiting = self.waiting.lock();
        waiting.last.command(now, db, words);
        self.count(&waiting);
    }

    #[inline]
    fn count(&self, waiting: &Waiting) {
        self.bytes.store(waiting.last.len(), Relaxed);
        // Who sees a record's effect has locked its shard after this.
        self.pushed.store(self.pushed.load(Relaxed) + 1, Release);
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

    /// Cuts the records off that wait. Nobody else is inside the keyspace.
    pub(crate) fn cut(&self) {
        let mut waiting = self.waiting.lock();
        let mut bytes = Vec::new();
        waiting.last.take(&mut bytes);
        waiting.cut.push_back((bytes, self.pushed()));
        self.bytes.store(0, Relaxed);
    }

    /// Appends records that are one. The shards that they have changed are locked.
    pub(crate) fn push_group(&self, group: &Encoder) {
        if !group.is_empty() {
            let mut waiting = self.waiting.lock();
            waiting.last.group(group);
            self.count(&waiting);
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
        if let Some((bytes, until)) = waiting.cut.pop_front() {
            *into = bytes;
            let is_cut = true;
            return TakenRecords { until, is_cut };
        }
        waiting.last.take(into);
        self.bytes.store(0, Relaxed);
        TakenRecords {
            until: self.pushed(),
            is_cut: false,
        }
    }
}
