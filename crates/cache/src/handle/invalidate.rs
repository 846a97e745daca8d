//! Invalidation of many entries at once: by a tag, or by a predicate.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use tidewheel_store::{Slot, TypedStore};
use tidewheel_time::Moment;

use super::cache::Cache;
use crate::core::hooks::SweepHook;
use crate::core::inner::{Inner, ShardCell};
use crate::removal::RemovalCause;
use crate::shard::Shard;
use crate::shard::flight::Flight;
use crate::shard::rules::Hashed;

/// Entries that a predicate is asked about in one hold of a shard's lock, about.
const ENTRIES_PER_HOLD: usize = 32;

/// # Invalidating many
impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Invalidates every entry that was stored with a [tag](crate::Lifetime::tag); returns whether
    /// there may have been one. O(1), however many there are, so it does not know how many:
    /// [`count_tag`](Self::count_tag) counts before. They are invisible when this returns, and the
    /// driver removes them in short holds; until then [`len`](Self::len) and
    /// [`weight`](Self::weight) count them. The listener gets them as
    /// [`RemovalCause::Invalidated`].
    ///
    /// An entry with the tag that another thread is about to store counts as stored before or
    /// after, never as both: what was handed to the cache before this was called stays invisible.
    ///
    /// A load in progress that is to replace an entry with the tag, in the foreground or the
    /// background, is overtaken: its caller gets what it brings, but nothing of that is stored or
    /// remembered, and those who wait for it load by themselves. A load of a key that had no live
    /// entry has no tags before its loader returns them: it is not concerned, and what it stores
    /// afterwards is visible.
    pub fn invalidate_tag(&self, tag: &str) -> bool {
        // Before a reader finds an entry that was.
        self.inner.hooks.sweep.get_or_init(SweepHook::new);
        let any = self.inner.rules.tags.invalidate(tag);
        if any {
            self.inner.requests.sweep_wanted();
        }
        any
    }

    /// Removes every entry for which a predicate holds, and returns how many those were.
    /// O(entries), in short holds of the shards' locks; the listener gets them as
    /// [`RemovalCause::Invalidated`].
    ///
    /// Exactly what was judged is removed: an entry that is replaced between judgement and removal
    /// is judged again, or stays if it was replaced once more. Entries that are stored while this
    /// runs may be met or not. The predicate runs under the shard's reader lock: it should be
    /// quick.
    ///
    /// # Panics
    ///
    /// If the predicate calls this cache.
    #[doc(
        alias = "invalidate_entries_if",
        alias = "support_invalidation_closures",
        alias = "removeIf"
    )]
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

/// One step of the walk over a shard: the places from `from` on and before `next`. They stay the
/// same however often the step is repeated, so no entry lies between two steps.
#[derive(Clone, Copy)]
struct JudgedSlots {
    from: u32,
    /// `None` for the end of the shard.
    next: Option<u32>,
}

impl JudgedSlots {
    /// The step that begins at a place and covers the next few entries, which are visited.
    fn begin<K, V>(store: &TypedStore<K, V>, from: u32, visit: impl FnMut(Slot)) -> Self {
        let next = store.scan(from, ENTRIES_PER_HOLD, visit);
        Self { from, next }
    }

    /// Visits the entries that the step covers by now, and perhaps a few behind them.
    fn visit<K, V>(self, store: &TypedStore<K, V>, mut visit: impl FnMut(Slot)) {
        let mut cursor = Some(self.from);
        while let Some(at) = cursor.filter(|at| self.next.is_none_or(|next| *at < next)) {
            cursor = store.scan(at, 1, &mut visit);
        }
    }

    fn slots<K, V>(self, store: &TypedStore<K, V>) -> Vec<Slot> {
        let mut slots = Vec::new();
        self.visit(store, |slot| slots.push(slot));
        slots
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Judges the next few entries and removes those that are to go. Returns where to go on.
    fn invalidate_some(
        &self,
        cell: &ShardCell<K, V, S>,
        from: u32,
        invalidate: &mut impl FnMut(&K, &V) -> bool,
        removed: &mut u64,
    ) -> Option<u32> {
        let mut judged = Vec::new();
        let (step, changes) = {
            let (shard, now) = self.read_now(cell);
            let step = JudgedSlots::begin(&shard.store, from, |slot| {
                if self.is_to_go(&shard, slot, now, invalidate) {
                    judged.push(slot);
                }
            });
            (step, shard.changes)
        };
        if judged.is_empty() {
            return step.next;
        }
        // Nearly always nobody has written in between, and slots are as they were.
        let done = self.change(cell, |shard, now| {
            // This hold itself is a change.
            if shard.changes != changes.wrapping_add(1) {
                return Err(None);
            }
            self.remove_judged(shard, judged.into_iter(), removed, now)
        });
        if let Err(latch) = done {
            self.invalidate_versions(cell, step, latch, invalidate, removed);
        }
        step.next
    }

    /// Takes a step in which somebody has written, or is about to: entries are known by their
    /// versions.
    fn invalidate_versions(
        &self,
        cell: &ShardCell<K, V, S>,
        step: JudgedSlots,
        mut latch: Option<Arc<Flight<V>>>,
        invalidate: &mut impl FnMut(&K, &V) -> bool,
        removed: &mut u64,
    ) {
        loop {
            if let Some(latch) = latch {
                latch.wait_open();
            }
            self.change(cell, |shard, _| {
                for slot in step.slots(&shard.store) {
                    shard.store.assign_version(slot);
                }
            });
            let judged = self.judge_versions(cell, step, invalidate);
            let done = self.change(cell, |shard, now| {
                let mut slots = step.slots(&shard.store);
                slots.retain(|slot| {
                    let version = shard.store.version(*slot);
                    version.is_some_and(|version| judged.binary_search(&version).is_ok())
                });
                self.remove_judged(shard, slots.into_iter(), removed, now)
            });
            match done {
                Ok(()) => return,
                Err(next) => latch = next,
            }
        }
    }

    /// The versions of what is to go, in order. What has none came after the walk, and stays.
    fn judge_versions(
        &self,
        cell: &ShardCell<K, V, S>,
        step: JudgedSlots,
        invalidate: &mut impl FnMut(&K, &V) -> bool,
    ) -> Vec<u64> {
        let (shard, now) = self.read_now(cell);
        let mut judged = Vec::new();
        step.visit(&shard.store, |slot| {
            let version = shard.store.version(slot);
            judged.extend(version.filter(|_| self.is_to_go(&shard, slot, now, invalidate)));
        });
        judged.sort_unstable();
        judged
    }

    fn is_to_go(
        &self,
        shard: &Shard<K, V, S>,
        slot: Slot,
        now: Moment,
        invalidate: &mut impl FnMut(&K, &V) -> bool,
    ) -> bool {
        let store = &shard.store;
        shard.is_live(slot, now) && invalidate(store.key(slot), store.value(slot))
    }

    /// Removes entries under the shard's lock, except for those whose next value a closure is
    /// computing: returns the latch of one of them.
    fn remove_judged(
        &self,
        shard: &mut Shard<K, V, S>,
        slots: impl Iterator<Item = Slot>,
        removed: &mut u64,
        now: Moment,
    ) -> Result<(), Option<Arc<Flight<V>>>> {
        let mut latched = None;
        for slot in slots {
            let hash = self.hash(shard.store.key(slot));
            if let Some(latch) = Self::writing_slot(shard, hash, slot) {
                latched = Some(latch);
                continue;
            }
            let cause = RemovalCause::Invalidated;
            let was_live = shard.remove_slot(hash.place(), slot, cause, now);
            // Its time may have ended since it was judged.
            *removed += u64::from(was_live);
        }
        match latched {
            None => Ok(()),
            Some(latch) => Err(Some(latch)),
        }
    }

    /// As [`Shard::writing`], for the key of an entry.
    fn writing_slot(
        shard: &mut Shard<K, V, S>,
        hash: Hashed,
        slot: Slot,
    ) -> Option<Arc<Flight<V>>> {
        let Shard {
            store,
            flights,
            negatives,
            effects,
            ..
        } = shard;
        let garbage = &mut effects.garbage;
        let is = |key: &K| key == store.key(slot);
        let latch = flights.writing(hash.0, is, &mut garbage.keys);
        if latch.is_none() && !negatives.is_empty() {
            garbage.forgotten(negatives.forget(hash.place(), is));
        }
        latch
    }
}
