//! Invalidation of many entries at once: by a tag, or by a predicate.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use tidewheel_store::{Slot, TypedStore};

use crate::cache::Cache;
use crate::flight::Flight;
use crate::inner::Inner;
use crate::removal::RemovalCause;
use crate::shard::{Shard, ShardCell};

/// Entries that a predicate is asked about in one hold of a shard's lock, about.
const ENTRIES_PER_HOLD: usize = 32;

impl<K, V, S> Cache<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// Invalidates every entry that was stored with a [tag](crate::Lifetime::tag); returns whether there
    /// may have been one. O(1), however many there are: they are invisible when this returns, and the
    /// driver removes them in short holds; until then [`len`](Self::len) and [`weight`](Self::weight)
    /// count them. The listener gets them as [`RemovalCause::Invalidated`].
    ///
    /// An entry with the tag that another thread is about to store counts as stored before or after,
    /// never as both: what was handed to the cache before this was called stays invisible. A load
    /// in progress has no tags before its loader returns them: it is not concerned, and what it stores
    /// afterwards is visible.
    pub fn invalidate_tag(&self, tag: &str) -> bool {
        let any = self.inner.tags.invalidate(tag);
        if any {
            self.inner.alarm.sweep_wanted();
        }
        any
    }

    /// Removes every entry for which a predicate holds, and returns how many those were. O(entries), in
    /// short holds of the shards' locks; the listener gets them as [`RemovalCause::Invalidated`].
    ///
    /// Exactly what was judged is removed: an entry that is replaced between judgement and removal is
    /// judged again, or stays if it was replaced once more. Entries that are stored while this runs may
    /// be met or not. The predicate runs under the shard's reader lock: it should be quick.
    ///
    /// # Panics
    ///
    /// If the predicate calls this cache.
    pub fn invalidate_if(&self, mut invalidate: impl FnMut(&K, &V) -> bool) -> u64 {
        let mut removed = 0;
        for cell in &self.inner.shards {
            let mut cursor = Some(0);
            while let Some(from) = cursor {
                cursor = self
                    .inner
                    .invalidate_some(cell, from, &mut invalidate, &mut removed);
            }
        }
        removed
    }
}

/// What a predicate holds for, among the next few entries of a shard.
struct Judged {
    entries: Vec<(Slot, Option<u64>)>,
    /// Where the next few begin.
    next: Option<u32>,
    /// The state of the shard at the time.
    changes: u64,
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Judges the next few entries and removes those that are to go. Returns where to go on.
    fn invalidate_some(
        &self,
        cell: &ShardCell<K, V>,
        from: u32,
        invalidate: &mut impl FnMut(&K, &V) -> bool,
        removed: &mut u64,
    ) -> Option<u32> {
        let judged = self.judge(cell, from, invalidate);
        if judged.entries.is_empty() {
            return judged.next;
        }
        // Nearly always nobody has written in between, and slots are as they were.
        let done = self.write(cell, |shard| {
            // This hold itself is a change.
            if shard.changes != judged.changes.wrapping_add(1) {
                return Err(None);
            }
            let slots = judged.entries.iter().map(|(slot, _)| *slot);
            self.remove_judged(shard, slots, removed)
        });
        let mut latch = match done {
            Ok(()) => return judged.next,
            Err(latch) => latch,
        };
        // Somebody has, or is about to: from here on entries are known by their versions.
        loop {
            if let Some(latch) = latch {
                latch.wait_open();
            }
            self.write(cell, |shard| {
                for slot in range(&shard.store, from, judged.next) {
                    shard.store.assign_version(slot);
                }
            });
            let judged = self.judge(cell, from, invalidate);
            let done = self.write(cell, |shard| {
                let mut slots = range(&shard.store, from, judged.next);
                slots.retain(|slot| {
                    let version = shard.store.version(*slot);
                    version.is_some() && judged.entries.iter().any(|(_, known)| *known == version)
                });
                self.remove_judged(shard, slots.into_iter(), removed)
            });
            match done {
                Ok(()) => return judged.next,
                Err(next) => latch = next,
            }
        }
    }

    fn judge(
        &self,
        cell: &ShardCell<K, V>,
        from: u32,
        invalidate: &mut impl FnMut(&K, &V) -> bool,
    ) -> Judged {
        let shard = self.read(cell);
        let store = &shard.store;
        let mut entries = Vec::new();
        let next = store.scan(from, ENTRIES_PER_HOLD, |slot| {
            if self.is_live(store, slot) && invalidate(store.key(slot), store.value(slot)) {
                entries.push((slot, store.version(slot)));
            }
        });
        Judged {
            entries,
            next,
            changes: shard.changes,
        }
    }

    /// Removes entries under the shard's lock, except for those whose next value a closure is computing:
    /// returns the latch of one of them.
    fn remove_judged(
        &self,
        shard: &mut Shard<K, V>,
        slots: impl Iterator<Item = Slot>,
        removed: &mut u64,
    ) -> Result<(), Option<Arc<Flight<V>>>> {
        let now = self.time.now().tick();
        let mut latched = None;
        for slot in slots {
            let hash = self.hash(shard.store.key(slot));
            let Shard {
                store,
                flights,
                garbage,
                ..
            } = shard;
            if !flights.is_empty() {
                let latch =
                    flights.writing(hash.0, |key| key == store.key(slot), &mut garbage.keys);
                if latch.is_some() {
                    latched = latch;
                    continue;
                }
            }
            let (entry, dead_by) = self.take_slot(shard, hash.place(), slot);
            // Its time may have ended since it was judged.
            *removed += u64::from(dead_by.is_none());
            let cause = dead_by.unwrap_or(RemovalCause::Invalidated);
            self.left(shard, entry, cause, now);
        }
        match latched {
            None => Ok(()),
            Some(latch) => Err(Some(latch)),
        }
    }
}

/// The entries between two places.
fn range<K, V>(store: &TypedStore<K, V>, from: u32, to: Option<u32>) -> Vec<Slot> {
    let mut slots = Vec::new();
    let mut cursor = Some(from);
    while let Some(at) = cursor.filter(|at| to.is_none_or(|to| *at < to)) {
        cursor = store.scan(at, ENTRIES_PER_HOLD, |slot| slots.push(slot));
    }
    slots
}
