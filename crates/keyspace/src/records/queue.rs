//! The queue of records, from the threads that change data to the one that writes the log.
//!
//! All threads share it. A record enters while the shards that it has changed are locked, so the
//! records of one key stand in the order of its changes, and one that has seen another's effect
//! stands behind that. So the order of the queue is the order of everything, and needs no stamps.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::Encoder;
use crate::order::{Rank, Ranked};
use crate::time::Now;

/// Records that wait to be taken.
#[derive(Debug)]
pub(crate) struct RecordQueue {
    waiting: Ranked<Encoder>,
    /// What one that has the whole keyspace has changed so far. Scripts within it add to that.
    open: Ranked<Option<Box<Encoder>>>,
    on: AtomicBool,
}

impl Default for RecordQueue {
    fn default() -> Self {
        Self {
            waiting: Ranked::new(Rank::Records, Encoder::default()),
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
        self.waiting.lock().command(now, db, words);
    }

    /// Appends records that are one. The shards that they have changed are locked.
    pub(crate) fn push_group(&self, group: &Encoder) {
        if !group.is_empty() {
            self.waiting.lock().group(group);
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

    /// Takes all that wait. Their bytes replace those of `into`.
    pub(crate) fn take(&self, into: &mut Vec<u8>) {
        self.waiting.lock().take(into);
    }
}
