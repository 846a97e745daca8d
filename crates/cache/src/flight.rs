//! Loads and latches in progress, by key: at most one of either for a key at a time.

use hashbrown::HashTable;

use crate::sync::{Arc, Condvar, Mutex, lock};

/// What is in progress in one shard.
#[derive(Debug)]
pub(crate) struct Flights<K, V> {
    table: HashTable<Entry<K, V>>,
}

#[derive(Debug)]
struct Entry<K, V> {
    hash: u64,
    key: K,
    latch: Arc<Latch>,
    value: std::marker::PhantomData<V>,
}

/// Keeps writers of one key waiting while a closure computes its next value.
#[derive(Debug, Default)]
pub(crate) struct Latch {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Latch {
    /// Waits until the latch is opened.
    pub(crate) fn wait(&self) {
        let mut open = lock(&self.open);
        while !*open {
            open = self
                .opened
                .wait(open)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }
}

impl<K, V> Flights<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            table: HashTable::new(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Tells that a writer is about to change the key: a latch that it must wait for, if there is one. A
    /// load in progress is superseded: its value goes to those who wait for it, not into the cache.
    pub(crate) fn writing(&mut self, hash: u64, is: impl Fn(&K) -> bool) -> Option<Arc<Latch>> {
        self.table
            .find(hash, |entry| entry.hash == hash && is(&entry.key))
            .map(|entry| Arc::clone(&entry.latch))
    }
}
