//! Removes entries: one for a caller, those that are due, or all of a shard at once. Each removal
//! is counted and filed.

use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;
use tidewheel_store::{Progress, Removed, Slot};

use crate::core::hash::Hashed;
use crate::core::inner::Inner;
use crate::core::removal::RemovalCause;
use crate::core::shard::Shard;
use crate::stats::Count;

impl<K, V, S> Inner<K, V, S> {
    /// Files an entry that has left the store.
    pub(crate) fn file_removal(
        &self,
        shard: &mut Shard<K, V>,
        removed: Removed<K, V>,
        cause: RemovalCause,
        now: u64,
    ) {
        self.count_removal(&removed, cause, now);
        self.file(shard, removed, cause, now);
    }

    /// Files an entry that was refused: it has not been in the store.
    pub(crate) fn refused(&self, shard: &mut Shard<K, V>, refused: Removed<K, V>, now: u64) {
        self.counters.add(Count::Rejected, 1);
        self.tags.release(refused.label);
        self.file(shard, refused, RemovalCause::Evicted, now);
    }

    /// As [`file_removal`](Self::file_removal), of an entry that counts nowhere.
    #[inline]
    pub(crate) fn file(
        &self,
        shard: &mut Shard<K, V>,
        entry: Removed<K, V>,
        cause: RemovalCause,
        now: u64,
    ) {
        self.delivery.left(
            &mut shard.outbox,
            &mut shard.garbage,
            entry,
            cause,
            now,
            &self.counters,
        );
    }

    /// Counts an entry that has left the store, and its use of its tags no longer.
    pub(crate) fn count_removal(&self, removed: &Removed<K, V>, cause: RemovalCause, now: u64) {
        self.tags.release(removed.label);
        let count = match cause {
            RemovalCause::Expired => {
                if let Some(deadline) = removed.deadline {
                    let late = now.saturating_sub(deadline);
                    self.counters.lateness().record(late, 1);
                }
                Some(Count::Expiration)
            }
            RemovalCause::Evicted => Some(Count::Eviction),
            RemovalCause::Replaced => None,
            _ => Some(Count::Removal),
        };
        if let Some(count) = count {
            self.counters.add(count, 1);
        }
    }

    /// Gives back to the account what the shard does not need any more.
    pub(crate) fn give_back(&self, shard: &mut Shard<K, V>) {
        let surplus = self.account.surplus(shard.lent, shard.store.weight());
        if surplus > 0 {
            shard.lent -= surplus;
            self.account.give_back(surplus);
        }
    }

    /// Takes every entry out of a shard, in one step.
    pub(crate) fn clear_shard(&self, shard: &mut Shard<K, V>, cause: RemovalCause) {
        let store = shard.store.take_all();
        shard.store.defer_frees();
        shard.store.continue_versions(&store);
        self.counters.add(Count::Removal, store.len() as u64);
        shard.published = u64::MAX;
        shard.republish = true;
        shard.flights.clear(&mut shard.garbage.keys);
        if let Some(negatives) = shard.negatives.take() {
            shard.garbage.forgotten(Some(negatives));
        }
        self.delivery.all_left(
            &mut shard.outbox,
            &mut shard.garbage,
            store,
            cause,
            &self.counters,
        );
        self.give_back(shard);
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Removes a key's entry under the shard's lock; with it, why it was not there for readers.
    pub(crate) fn take<Q: Equivalent<K> + ?Sized>(
        &self,
        shard: &mut Shard<K, V>,
        hash: Hashed,
        key: &Q,
    ) -> Option<(Removed<K, V>, Option<RemovalCause>)> {
        let slot = Self::find(shard, hash, key)?;
        Some(self.take_slot(shard, hash.place(), slot))
    }

    /// As [`take`](Self::take), for an entry that was found.
    pub(crate) fn take_slot(
        &self,
        shard: &mut Shard<K, V>,
        place: u32,
        slot: Slot,
    ) -> (Removed<K, V>, Option<RemovalCause>) {
        let dead_by = self.dead_by(&shard.store, slot);
        let removed = shard.store.remove(slot, place);
        shard.removals += 1;
        self.give_back(shard);
        (removed, dead_by)
    }

    /// Removes due entries under the shard's lock, touching at most `budget` timer records.
    #[inline(never)]
    pub(crate) fn expire_some(&self, shard: &mut Shard<K, V>, now: u64, budget: u32) -> Progress {
        let place_of = |key: &K| self.place_of(key);
        let Shard {
            store,
            outbox,
            garbage,
            negatives,
            ..
        } = shard;
        let forgotten = negatives.expire(now, budget, &place_of, garbage);
        let budget = budget.saturating_sub(forgotten.moved).max(1);
        let (mut expired, mut removed) = (0, 0);
        // Most of a batch are about as late.
        let mut lateness = self.counters.lateness().runs();
        let mut progress = store.expire(now, budget, &place_of, |entry| {
            removed += 1;
            let cause = self.cause_of(entry.label, RemovalCause::Expired);
            if cause == RemovalCause::Expired {
                expired += 1;
                lateness.record(now.saturating_sub(entry.deadline.unwrap_or(now)));
            }
            self.tags.release(entry.label);
            self.delivery
                .left(outbox, garbage, entry, cause, now, &self.counters);
        });
        if removed > 0 {
            self.counters.add(Count::Expiration, expired);
            self.counters.add(Count::Removal, removed - expired);
            shard.removals = shard.removals.saturating_add(removed as u32);
        }
        shard.republish = true;
        // What was invalidated has not expired: its record was merely dropped.
        progress.fired = expired as u32;
        progress.moved += forgotten.moved + (removed - expired) as u32;
        progress.backlog |= forgotten.backlog;
        progress
    }
}
