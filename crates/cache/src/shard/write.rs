//! Stores an entry: in the place of another one, or in a new place for which room is made.

use std::hash::{BuildHasher, Hash};
use std::mem::needs_drop;
use std::sync::Arc;

use tidewheel_store::{Attributes, Overwritten, Removed, Slot};
use tidewheel_time::Moment;

use super::Shard;
use super::flight::Flight;
use super::rules::{Hashed, Rules};
use super::tags::HeldTags;
use crate::removal::RemovalCause;
use crate::stats::Count;

/// What [`Shard::overwrite`] knows of a key whose value it has not overwritten.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// It has no entry, and nothing is in the way of a new one.
    New,
    Unknown,
}

/// An entry that is stored once a latch opens.
pub(crate) struct Latched<K, V> {
    pub(crate) latch: Arc<Flight<V>>,
    pub(crate) key: K,
    pub(crate) value: V,
}

/// An entry that is about to be stored.
pub(crate) struct Prepared<'a> {
    pub(crate) attributes: Attributes,
    /// The tags that `attributes.label` stands for.
    pub(crate) tags: HeldTags<'a>,
    /// When it is stored, as far as that is known.
    pub(crate) now: Moment,
    /// True if the entry is no heavier than the whole capacity.
    pub(crate) fits: bool,
}

impl Prepared<'_> {
    /// Returns whether no reader could get the entry, not even in place of an error.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        let deadline = self.attributes.deadline;
        deadline.is_some_and(|deadline| deadline <= self.now.tick())
    }
}

impl<K: Hash + Eq, V> Shard<K, V> {
    /// As [`put`](Self::put), of any key: a load of it is superseded, an error or absence
    /// forgotten. Gives back what is to be stored once a latch opens.
    pub(crate) fn put_unless_latched<S: BuildHasher>(
        &mut self,
        rules: &Rules<K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> Option<Latched<K, V>> {
        if let Some(latch) = self.writing(hash, |stored| *stored == key) {
            return Some(Latched { latch, key, value });
        }
        self.put(rules, hash, key, value, prepared);
        None
    }

    /// Stores a prepared entry; tells whether it did. A closed cache drops it.
    pub(crate) fn put<S: BuildHasher>(
        &mut self,
        rules: &Rules<K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> bool {
        if self.closed {
            self.effects.garbage.push(key, value);
            return false;
        }
        let attributes = prepared.attributes;
        if !prepared.fits || prepared.is_over() || !rules.tags.is_current(attributes.label) {
            self.turn_away(rules, hash, key, value, prepared);
            return prepared.fits;
        }
        match self.find(hash, &key) {
            Some(slot) => {
                self.replace(rules, slot, key, value, prepared);
                self.is_stored(rules, slot, prepared);
            }
            None => self.put_new(rules, hash, key, value, prepared),
        }
        true
    }

    /// As [`put`](Self::put), of a key without an entry, with nothing in the way.
    #[inline(always)]
    pub(crate) fn put_new<S: BuildHasher>(
        &mut self,
        rules: &Rules<K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) {
        let Attributes { deadline, .. } = prepared.attributes;
        let tick = prepared.now.tick();
        if prepared.attributes.is_plain() && self.must_evict_for(rules, 1, tick) {
            return self.exchange(rules, hash, key, value, deadline, tick);
        }
        let slot = self.add(rules, hash, key, value, prepared);
        self.is_stored(rules, slot, prepared);
    }

    /// Counts an entry that is in the store now, and makes room if it takes more than there is.
    // Not before it is: a user's `Eq` may have panicked.
    #[inline(always)]
    fn is_stored<S: BuildHasher>(
        &mut self,
        rules: &Rules<K, V, S>,
        slot: Slot,
        prepared: &Prepared<'_>,
    ) {
        self.effects.counts.add(Count::Insert, 1);
        self.scheduled(prepared.attributes.deadline);
        if self.store.weight() > self.lent {
            self.make_room(rules, slot, prepared.now.tick());
        }
    }

    /// Stores an entry whose key is not in the store.
    #[inline(always)]
    fn add<S: BuildHasher>(
        &mut self,
        rules: &Rules<K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> Slot {
        let (lent, tick) = (self.lent, prepared.now.tick());
        let slot = self.store.insert(
            hash.place(),
            key,
            value,
            prepared.attributes,
            tick,
            lent,
            &|key: &K| rules.place_of(key),
        );
        prepared.tags.pass_on();
        slot
    }

    /// Stores an entry of which nothing but its end is to be kept, and whose key has none, with
    /// nothing in the way: in the slot of one that is evicted for it, where one
    /// [must be](Self::must_evict_for).
    #[inline(never)]
    pub(crate) fn exchange<S: BuildHasher>(
        &mut self,
        rules: &Rules<K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        deadline: Option<u64>,
        tick: u64,
    ) {
        let place_of = |key: &K| rules.place_of(key);
        let (lent, place) = (self.lent, hash.place());
        let store = &mut self.store;
        let (slot, evicted) = store.exchange(place, key, value, deadline, tick, lent, &place_of);
        if let Some(evicted) = evicted {
            self.evicted(rules, evicted, tick);
        }
        self.effects.counts.add(Count::Insert, 1);
        self.scheduled(deadline);
        if self.store.weight() > self.lent {
            self.make_room(rules, slot, tick);
        }
    }

    /// Stores an entry in the place of another one, dead or alive, which leaves.
    #[inline(always)]
    fn replace<S: BuildHasher>(
        &mut self,
        rules: &Rules<K, V, S>,
        slot: Slot,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) {
        let Attributes { deadline, .. } = prepared.attributes;
        let tick = prepared.now.tick();
        if !prepared.attributes.is_plain() {
            return self.replace_closely(rules, slot, key, value, prepared);
        }
        let until = tick + rules.config.grace;
        match self
            .store
            .replace_plainly(slot, value, deadline, until, tick)
        {
            Ok(value) => {
                let old = Removed {
                    key,
                    value,
                    deadline: None,
                    weight: 1,
                    label: 0,
                };
                self.effects.file(rules, old, RemovalCause::Replaced, tick);
            }
            Err(value) => self.replace_closely(rules, slot, key, value, prepared),
        }
    }

    /// As [`replace`](Self::replace), where one of the two may have more than its end, or the old
    /// one may be dead.
    #[inline(never)]
    fn replace_closely<S: BuildHasher>(
        &mut self,
        rules: &Rules<K, V, S>,
        slot: Slot,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) {
        let attributes = prepared.attributes;
        let tick = prepared.now.tick();
        let deadline = self.store.deadline(slot);
        let cause = self
            .dead_by(rules, slot, prepared.now)
            .unwrap_or(RemovalCause::Replaced);
        if cause != RemovalCause::Replaced {
            // A pin is one entry's: this is another one, in the same place.
            self.store.set_pinned(slot, false);
        }
        let label = self.store.label_of(slot);
        let weight = self.store.weight_of(slot);
        let old = self.store.replace(slot, value, attributes, tick);
        prepared.tags.pass_on();
        if attributes.weight < weight {
            self.give_back(rules);
        }
        let removed = Removed {
            key,
            value: old,
            deadline,
            weight,
            label,
        };
        self.effects.removed(rules, removed, cause, tick);
    }

    /// Does not store an entry that is heavier than the whole capacity, or one whose time is over
    /// at once, or one of whose tags was invalidated while it was on its way: these two count as
    /// stored before that. An old value of the key goes too.
    #[cold]
    fn turn_away<S: BuildHasher>(
        &mut self,
        rules: &Rules<K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) {
        self.remove(rules, hash, &key, RemovalCause::Replaced, prepared.now);
        let now = prepared.now.tick();
        let removed = Removed {
            key,
            value,
            deadline: prepared.attributes.deadline,
            weight: prepared.attributes.weight,
            label: prepared.tags.pass_on(),
        };
        if prepared.fits {
            self.effects.counts.add(Count::Insert, 1);
            let cause = rules.cause_of(removed.label, RemovalCause::Expired);
            self.effects.removed(rules, removed, cause, now);
        } else {
            self.effects.refused(rules, removed, now);
        }
    }

    /// Stores a value in the place of a live one, if neither of the two has more than its end, and
    /// nobody drops the old one or is told of it. Then nothing else is to be done. If it cannot,
    /// the value comes back, and what is known of the key.
    #[inline(always)]
    pub(crate) fn overwrite<S: BuildHasher>(
        &mut self,
        rules: &Rules<K, V, S>,
        hash: Hashed,
        key: &K,
        value: V,
        deadline: Option<u64>,
        tick: u64,
    ) -> Result<(), (V, Place)> {
        if needs_drop::<(K, V)>() || rules.events.has_listener() {
            return Err((value, Place::Unknown));
        }
        let is_over = deadline.is_some_and(|deadline| deadline <= tick);
        if self.closed || !self.is_quiet() || is_over {
            return Err((value, Place::Unknown));
        }
        let until = tick + rules.config.grace;
        let is = |stored: &K| stored == key;
        let store = &mut self.store;
        match store.overwrite(hash.place(), is, value, deadline, until, tick) {
            Overwritten::Done => {}
            Overwritten::Nowhere(value) => return Err((value, Place::New)),
            Overwritten::Not(value) => return Err((value, Place::Unknown)),
        }
        self.effects.counts.add(Count::Insert, 1);
        self.scheduled(deadline);
        Ok(())
    }

    /// Gives an entry, dead or alive, the lifetime of a prepared one that has the same value. It is
    /// no other entry: nobody hears of it. If there is none, or the time of the new one is over at
    /// once, the value is stored as any other.
    #[cold]
    pub(crate) fn live_on<S: BuildHasher>(
        &mut self,
        rules: &Rules<K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> bool {
        let slot = self
            .find(hash, &key)
            .filter(|slot| self.is_kept(rules, *slot, prepared.now));
        let Some(slot) = slot.filter(|_| self.admits(rules, prepared)) else {
            return self.put(rules, hash, key, value, prepared);
        };
        let label = self.store.label_of(slot);
        let attributes = prepared.attributes;
        self.store.renew(slot, attributes, prepared.now.tick());
        prepared.tags.pass_on();
        rules.tags.release(label);
        self.scheduled(attributes.deadline);
        self.effects.garbage.push(key, value);
        true
    }

    /// Returns whether a prepared entry stays once it is stored. It has room already, whatever it
    /// weighs.
    fn admits<S>(&self, rules: &Rules<K, V, S>, prepared: &Prepared<'_>) -> bool {
        let is_current = rules.tags.is_current(prepared.attributes.label);
        !self.closed && !prepared.is_over() && is_current
    }
}
