//! The watched keys of one shard, and their watchers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::key::Key;

/// The watched keys of one shard, and the watchers of each.
#[derive(Debug, Default)]
pub(crate) struct Watched(HashMap<Box<[u8]>, Vec<Watcher>>);

#[derive(Debug)]
struct Watcher {
    db: u32,
    /// The key's hash.
    hash: u64,
    /// The tick at which it was watched.
    since: u64,
    changed: Arc<AtomicBool>,
}

impl Watched {
    /// Adds one who watches a key.
    pub(crate) fn add(&mut self, db: u32, key: Key<'_>, since: u64, changed: &Arc<AtomicBool>) {
        let watchers = self.0.entry(key.bytes.into()).or_default();
        watchers.push(Watcher {
            db,
            hash: key.hash,
            since,
            changed: Arc::clone(changed),
        });
    }

    /// Takes one away who watches a key. True if nobody watches anything any more.
    pub(crate) fn remove(&mut self, db: u32, key: &[u8], changed: &Arc<AtomicBool>) -> bool {
        if let Some(watchers) = self.0.get_mut(key) {
            watchers.retain(|watcher| watcher.db != db || !Arc::ptr_eq(&watcher.changed, changed));
            if watchers.is_empty() {
                self.0.remove(key);
            }
        }
        self.0.is_empty()
    }

    /// A key has changed.
    pub(crate) fn mark(&self, db: u32, key: &[u8]) {
        for watcher in self.0.get(key).into_iter().flatten() {
            if watcher.db == db {
                watcher.changed.store(true, Relaxed);
            }
        }
    }

    /// Marks the watchers of a database for which `is` returns true. It gets the key's hash, the
    /// key, and the tick since which it is watched.
    pub(crate) fn mark_where(&self, db: u32, is: impl Fn(u64, &[u8], u64) -> bool) {
        for (key, watchers) in &self.0 {
            for watcher in watchers.iter().filter(|watcher| watcher.db == db) {
                if is(watcher.hash, key, watcher.since) {
                    watcher.changed.store(true, Relaxed);
                }
            }
        }
    }
}
