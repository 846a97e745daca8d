//! One shard: all rules of a cache, without a clock, a lock or a thread.
//!
//! State in, effects out: each call is told what time it is, and acts by the
//! [`Rules`](rules::Rules) that all shards of a cache share. What it leaves to do (events, garbage,
//! an earlier deadline, wishes to other shards) stays in the shard until a
//! [hold](crate::core::inner::Hold) has released the lock.

pub(crate) mod by_hash;
pub(crate) mod config;
pub(crate) mod effects;
pub(crate) mod ends;
pub(crate) mod flight;
mod leave;
pub(crate) mod loading;
pub(crate) mod negative;
pub(crate) mod rules;
pub(crate) mod sight;
pub(crate) mod tags;
#[cfg(test)]
mod tests;
pub(crate) mod write;

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use equivalent::Equivalent;
use tidewheel_store::{Slot, TypedStore};

use self::effects::Effects;
use self::flight::{Flight, Flights};
use self::negative::Negatives;
use self::rules::{Hashed, Rules};

/// Insertions after which the published deadline is looked up again though none of them was
/// earlier: the wheel asks for earlier wake-ups when many records lie in one slot.
const REPUBLISH_EVERY: u32 = 64;

/// Removals that make a shard worth tidying.
pub(crate) const UNTIDY: u32 = 512;

#[repr(C, align(64))]
pub(crate) struct Shard<K, V, S> {
    pub(crate) rules: Arc<Rules<K, V, S>>,
    pub(crate) store: TypedStore<K, V>,
    /// Weight that the account has lent.
    pub(crate) lent: u64,
    pub(crate) flights: Flights<K, V>,
    pub(crate) negatives: Negatives<K>,
    pub(crate) effects: Effects<K, V>,
    /// The value that was published as the next deadline.
    pub(crate) published: u64,
    pub(crate) republish: bool,
    unpublished: u32,
    /// Removals since the last tidying.
    pub(crate) removals: u32,
    pub(crate) closed: bool,
    /// Times that the lock was held for writing: nothing has changed while it stays the same.
    pub(crate) changes: u64,
}

impl<K, V, S> Shard<K, V, S> {
    pub(crate) fn new(rules: Arc<Rules<K, V, S>>, store: TypedStore<K, V>) -> Self {
        Self {
            store,
            lent: rules.account.first_loan(),
            rules,
            flights: Flights::new(),
            negatives: Negatives::new(),
            effects: Effects::new(),
            published: u64::MAX,
            republish: false,
            unpublished: 0,
            removals: 0,
            closed: false,
            changes: 0,
        }
    }

    /// Finds a key, dead or alive.
    #[inline]
    pub(crate) fn find<Q: Equivalent<K> + ?Sized>(&self, hash: Hashed, key: &Q) -> Option<Slot> {
        let is = move |stored: &K| key.equivalent(stored);
        self.store.find(hash.place(), is)
    }

    /// Notes that an entry got a deadline.
    #[inline]
    pub(crate) fn scheduled(&mut self, deadline: Option<u64>) {
        let Some(deadline) = deadline else { return };
        self.unpublished += 1;
        if deadline < self.published || self.unpublished >= REPUBLISH_EVERY {
            self.republish = true;
            self.unpublished = 0;
        }
    }

    /// A lower bound of the next deadline of an entry, or of an error or absence that is
    /// remembered.
    #[inline]
    pub(crate) fn next_deadline(&self) -> u64 {
        let next = self.store.next_deadline().unwrap_or(u64::MAX);
        next.min(self.negatives.next_deadline())
    }

    /// Returns whether a hold ends with nothing to publish, to drop or to tell.
    #[inline(always)]
    pub(crate) fn leaves_nothing(&self) -> bool {
        let has_work = self.republish || self.effects.outbox.news || self.store.has_freed();
        !has_work && self.effects.garbage.is_empty()
    }

    /// Returns whether no key is being loaded or computed, and no error or absence is remembered.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.flights.is_empty() && self.negatives.is_empty()
    }

    /// Tells that a writer is about to change a key: a latch that it must wait for first, if there
    /// is one. A load in progress is superseded, an error or absence forgotten.
    #[inline]
    pub(crate) fn writing(
        &mut self,
        hash: Hashed,
        is: impl Fn(&K) -> bool,
    ) -> Option<Arc<Flight<V>>> {
        if self.is_quiet() {
            return None;
        }
        self.overtake(hash, is)
    }

    /// The slow path of [`writing`](Self::writing), apart from it so that a change with nothing in
    /// progress takes a few instructions.
    #[cold]
    #[inline(never)]
    fn overtake(&mut self, hash: Hashed, is: impl Fn(&K) -> bool) -> Option<Arc<Flight<V>>> {
        let latch = self
            .flights
            .writing(hash.0, &is, &mut self.effects.garbage.keys);
        if latch.is_none() {
            self.forget_negative(hash, is);
        }
        latch
    }

    /// Forgets an error or absence that is remembered of a key.
    pub(crate) fn forget_negative(&mut self, hash: Hashed, is: impl Fn(&K) -> bool) {
        let forgotten = self.negatives.forget(hash.place(), is);
        self.effects.garbage.forgotten(forgotten);
    }

    /// Panics if the structure is broken. Adds the labels of all entries that are here. For tests.
    pub(crate) fn validate(&self, labels: &mut Vec<u64>)
    where
        K: Hash,
        S: BuildHasher,
    {
        let place_of = |key: &K| self.rules.place_of(key);
        self.store.validate(&place_of);
        let most = self.rules.config.negatives_per_shard;
        self.negatives.validate(most, &place_of);
        labels.extend(self.store.labels());
        for entries in self.effects.outbox.shards() {
            entries.each_label(&mut |label| labels.push(label));
        }
    }

    /// Gives an entry another deadline.
    pub(crate) fn set_deadline(&mut self, slot: Slot, deadline: Option<u64>, now: u64) {
        self.store.set_deadline(slot, deadline, now);
        self.scheduled(deadline);
    }
}
