//! Decides whether an entry is alive: compares its deadline with the clock, and its tags with their
//! invalidations.

use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use equivalent::Equivalent;
use tidewheel_store::{FirstLook, Found, Slot, TypedStore};

use crate::core::hash::Hashed;
use crate::core::inner::Inner;
use crate::core::removal::RemovalCause;
use crate::core::shard::{Shard, ShardCell};
use crate::lifetime::Ttl;
use crate::time::Bound;

impl<K, V, S> Inner<K, V, S> {
    /// The end of an entry as readers see it; the store keeps it for the grace period longer.
    #[inline]
    pub(crate) fn end_of(&self, store: &TypedStore<K, V>, slot: Slot) -> Option<u64> {
        end_at(store.deadline(slot), self.grace_of(store, slot))
    }

    /// Returns how long the store keeps an entry after its end.
    #[inline]
    pub(crate) fn grace_of(&self, store: &TypedStore<K, V>, slot: Slot) -> u64 {
        if store.has_attributes(slot) {
            self.config.grace(store.grace(slot))
        } else {
            self.config.grace
        }
    }

    /// As [`is_live`](Self::is_live), of an entry that was looked up for reading, and whose end is
    /// known.
    #[inline(always)]
    pub(crate) fn is_there_till(
        &self,
        store: &TypedStore<K, V>,
        entry: &Found<'_, K, V>,
        end: Option<u64>,
    ) -> bool {
        !self.is_over(end) && self.is_valid(store, entry)
    }

    /// Returns whether none of an entry's tags was invalidated.
    #[inline(always)]
    pub(crate) fn is_valid(&self, store: &TypedStore<K, V>, entry: &Found<'_, K, V>) -> bool {
        !entry.has_attributes() || self.tags.is_current(store.label_of(entry.slot()))
    }

    /// The time, for a look at an entry. Where none has a deadline, the clock is not read.
    #[inline(always)]
    pub(crate) fn time_in(&self, cell: &ShardCell<K, V>) -> Bound {
        if cell.has_deadlines() {
            self.time.bound()
        } else {
            Bound::NONE
        }
    }

    /// Returns whether an entry is certainly alive and a read changes nothing but its hit count.
    #[inline(always)]
    pub(crate) fn is_plainly_there(
        &self,
        entry: &Found<'_, K, V>,
        until: Option<u64>,
        now: Bound,
    ) -> bool {
        entry.lasts(|deadline| now.plus(self.ahead).is_before(deadline))
            && until.is_none_or(|until| until > now.tick())
            && !entry.has_attributes()
    }

    /// As [`grace_of`](Self::grace_of), of an entry that was looked up for reading.
    #[inline(always)]
    pub(crate) fn grace_there(&self, store: &TypedStore<K, V>, entry: &Found<'_, K, V>) -> u64 {
        if entry.has_attributes() {
            self.config.grace(store.grace(entry.slot()))
        } else {
            self.config.grace
        }
    }

    /// Returns whether readers see an entry: its time is not over, and none of its tags was
    /// invalidated.
    #[inline]
    pub(crate) fn is_live(&self, store: &TypedStore<K, V>, slot: Slot) -> bool {
        !self.is_over(self.end_of(store, slot))
            && (!store.has_attributes(slot) || self.tags.is_current(store.label_of(slot)))
    }

    /// Returns the remaining time of an entry, by one reading of the clock.
    pub(crate) fn ttl_of(&self, store: &TypedStore<K, V>, slot: Slot) -> Ttl {
        if !self.tags.is_current(store.label_of(slot)) {
            return Ttl::Missing;
        }
        match self.end_of(store, slot).map(|end| self.until(end)) {
            None => Ttl::Forever,
            Some(Duration::ZERO) => Ttl::Missing,
            Some(left) => Ttl::Left(left),
        }
    }

    #[inline]
    fn is_over(&self, end: Option<u64>) -> bool {
        end.is_some_and(|end| self.time.reached(end))
    }

    /// Why an entry is not there for readers; `None` when it is. Nothing tells whether its time was
    /// over before a tag of it was invalidated: then it counts as invalidated.
    pub(crate) fn dead_by(&self, store: &TypedStore<K, V>, slot: Slot) -> Option<RemovalCause> {
        if self.is_live(store, slot) {
            None
        } else if self.tags.is_current(store.label_of(slot)) {
            Some(RemovalCause::Expired)
        } else {
            Some(RemovalCause::Invalidated)
        }
    }

    /// The cause of an entry that leaves for this one: if a tag of it was invalidated, it was not
    /// there for readers any more, and left for that.
    #[inline]
    pub(crate) fn cause_of(&self, label: u64, cause: RemovalCause) -> RemovalCause {
        if self.tags.is_current(label) {
            cause
        } else {
            RemovalCause::Invalidated
        }
    }

    /// Returns whether a live entry is past its soft deadline.
    #[inline]
    pub(crate) fn is_stale(&self, store: &TypedStore<K, V>, slot: Slot) -> bool {
        store.has_attributes(slot) && self.is_past_soft(store, slot)
    }

    fn is_past_soft(&self, store: &TypedStore<K, V>, slot: Slot) -> bool {
        let soft = store.soft(slot).tick();
        soft.is_some_and(|tick| self.time.reached(tick))
    }

    /// Returns whether a live entry's next value should be loaded: it is stale, and no load has
    /// failed just now.
    pub(crate) fn is_due(&self, store: &TypedStore<K, V>, slot: Slot) -> bool {
        let due = store.soft(slot).due();
        due.is_some_and(|tick| self.time.reached(tick))
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Looks a key up for reading, dead or alive; with it, what time it is. The clock is read once
    /// the index has found the slot, and before the slot is looked at: while that is on its way to
    /// the processor, nothing else is to be done.
    #[inline(always)]
    pub(crate) fn look<'a, Q: Equivalent<K> + ?Sized>(
        clock: impl FnOnce() -> Bound,
        shard: &'a Shard<K, V>,
        hash: Hashed,
        key: &Q,
    ) -> FirstLook<'a, K, V, Bound> {
        let is = |stored: &K| key.equivalent(stored);
        shard.store.look_first(hash.place(), clock, is)
    }
}

/// The end of an entry that the store keeps until `deadline`, as readers see it.
#[inline]
pub(crate) fn end_at(deadline: Option<u64>, grace: u64) -> Option<u64> {
    deadline.map(|deadline| deadline.saturating_sub(grace))
}
