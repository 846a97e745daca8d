//! Stores an entry, in the place of another one or in a new place, and makes room for it: by a
//! loan, by removing due entries, by eviction.

use std::hash::{BuildHasher, Hash};
use std::mem::needs_drop;
use std::sync::Arc;

use tidewheel_store::{Attributes, Overwritten, Removed, Slot};
use tidewheel_time::Moment;

use crate::removal::RemovalCause;
use crate::shard::Shard;
use crate::shard::effects::ShardRequest;
use crate::shard::flight::Flight;
use crate::shard::rules::Hashed;
use crate::shard::tags::HeldTags;
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

impl<K: Hash + Eq, V, S: BuildHasher> Shard<K, V, S> {
    /// As [`put`](Self::put), of any key: a load of it is superseded, an error or absence
    /// forgotten. Gives back what is to be stored once a latch opens.
    pub(crate) fn put_unless_latched(
        &mut self,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> Option<Latched<K, V>> {
        if let Some(latch) = self.writing(hash, |stored| *stored == key) {
            return Some(Latched { latch, key, value });
        }
        self.put(hash, key, value, prepared);
        None
    }

    /// Stores a prepared entry; tells whether it did. A closed cache drops it.
    pub(crate) fn put(&mut self, hash: Hashed, key: K, value: V, prepared: &Prepared<'_>) -> bool {
        if self.closed {
            self.effects.garbage.push(key, value);
            return false;
        }
        let attributes = prepared.attributes;
        if !prepared.fits || prepared.is_over() || !self.rules.tags.is_current(attributes.label) {
            self.turn_away(hash, key, value, prepared);
            return prepared.fits;
        }
        match self.find(hash, &key) {
            Some(slot) => {
                self.replace(slot, key, value, prepared);
                let (deadline, tick) = (attributes.deadline, prepared.now.tick());
                self.is_stored(slot, deadline, tick);
            }
            None => self.put_new(hash, key, value, prepared),
        }
        true
    }

    /// As [`put`](Self::put), of a key without an entry, with nothing in the way.
    #[inline(always)]
    pub(crate) fn put_new(&mut self, hash: Hashed, key: K, value: V, prepared: &Prepared<'_>) {
        let Attributes { deadline, .. } = prepared.attributes;
        let tick = prepared.now.tick();
        if prepared.attributes.is_plain() && self.must_evict_for(1, tick) {
            return self.exchange(hash, key, value, deadline, tick);
        }
        let (lent, place_of) = (self.lent, |key: &K| self.rules.place_of(key));
        let (place, attributes) = (hash.place(), prepared.attributes);
        let store = &mut self.store;
        let slot = store.insert(place, key, value, attributes, tick, lent, &place_of);
        prepared.tags.pass_on();
        self.is_stored(slot, deadline, tick);
    }

    /// Counts an entry that is in the store now, and makes room if it takes more than there is.
    // Not before it is: a user's `Eq` may have panicked.
    #[inline(always)]
    fn is_stored(&mut self, slot: Slot, deadline: Option<u64>, tick: u64) {
        self.effects.counts.add(Count::Insert, 1);
        self.scheduled(deadline);
        if self.store.weight() > self.lent {
            self.make_room(slot, tick);
        }
    }

    /// Stores an entry of which nothing but its end is to be kept, and whose key has none, with
    /// nothing in the way: in the slot of one that is evicted for it, where one
    /// [must be](Self::must_evict_for).
    #[inline(never)]
    pub(crate) fn exchange(
        &mut self,
        hash: Hashed,
        key: K,
        value: V,
        deadline: Option<u64>,
        tick: u64,
    ) {
        let place_of = |key: &K| self.rules.place_of(key);
        let (lent, place) = (self.lent, hash.place());
        let store = &mut self.store;
        let (slot, evicted) = store.exchange(place, key, value, deadline, tick, lent, &place_of);
        if let Some(evicted) = evicted {
            self.evicted(evicted, tick);
        }
        self.is_stored(slot, deadline, tick);
    }

    /// Stores an entry in the place of another one, dead or alive, which leaves.
    #[inline(always)]
    fn replace(&mut self, slot: Slot, key: K, value: V, prepared: &Prepared<'_>) {
        let Attributes { deadline, .. } = prepared.attributes;
        let tick = prepared.now.tick();
        if !prepared.attributes.is_plain() {
            return self.replace_closely(slot, key, value, prepared);
        }
        let until = tick + self.rules.config.grace;
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
                self.effects
                    .file(&self.rules, old, RemovalCause::Replaced, tick);
            }
            Err(value) => self.replace_closely(slot, key, value, prepared),
        }
    }

    /// As [`replace`](Self::replace), where one of the two may have more than its end, or the old
    /// one may be dead.
    #[inline(never)]
    fn replace_closely(&mut self, slot: Slot, key: K, value: V, prepared: &Prepared<'_>) {
        let attributes = prepared.attributes;
        let tick = prepared.now.tick();
        let deadline = self.store.deadline(slot);
        let cause = self
            .dead_by(slot, prepared.now)
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
            self.give_back();
        }
        let removed = Removed {
            key,
            value: old,
            deadline,
            weight,
            label,
        };
        self.effects.removed(&self.rules, removed, cause, tick);
    }

    /// Does not store an entry that is heavier than the whole capacity, or one whose time is over
    /// at once, or one of whose tags was invalidated while it was on its way: these two count as
    /// stored before that. An old value of the key goes too.
    #[cold]
    fn turn_away(&mut self, hash: Hashed, key: K, value: V, prepared: &Prepared<'_>) {
        self.remove(hash, &key, RemovalCause::Replaced, prepared.now);
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
            let cause = self.rules.cause_of(removed.label, RemovalCause::Expired);
            self.effects.removed(&self.rules, removed, cause, now);
        } else {
            self.effects.refused(&self.rules, removed, now);
        }
    }

    /// Stores a value in the place of a live one, if neither of the two has more than its end, and
    /// nobody drops the old one or is told of it. Then nothing else is to be done. If it cannot,
    /// the value comes back, and what is known of the key.
    #[inline(always)]
    pub(crate) fn overwrite(
        &mut self,
        hash: Hashed,
        key: &K,
        value: V,
        deadline: Option<u64>,
        tick: u64,
    ) -> Result<(), (V, Place)> {
        if needs_drop::<(K, V)>() || self.rules.events.has_listener() {
            return Err((value, Place::Unknown));
        }
        let is_over = deadline.is_some_and(|deadline| deadline <= tick);
        if self.closed || !self.is_quiet() || is_over {
            return Err((value, Place::Unknown));
        }
        let until = tick + self.rules.config.grace;
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
    pub(crate) fn live_on(
        &mut self,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> bool {
        let slot = self
            .find(hash, &key)
            .filter(|slot| self.is_kept(*slot, prepared.now));
        let Some(slot) = slot.filter(|_| self.admits(prepared)) else {
            return self.put(hash, key, value, prepared);
        };
        let label = self.store.label_of(slot);
        let attributes = prepared.attributes;
        self.store.renew(slot, attributes, prepared.now.tick());
        prepared.tags.pass_on();
        self.rules.tags.release(label);
        self.scheduled(attributes.deadline);
        self.effects.garbage.push(key, value);
        true
    }

    /// Returns whether a prepared entry stays once it is stored. It has room already, whatever it
    /// weighs.
    fn admits(&self, prepared: &Prepared<'_>) -> bool {
        let is_current = self.rules.tags.is_current(prepared.attributes.label);
        !self.closed && !prepared.is_over() && is_current
    }
}

/// Timer records of due entries that an insertion touches at once before it evicts a live one.
const DUE_BEFORE_EVICTION: u32 = 16;

/// The number of such rounds while they meet only timer records that must be moved, or whose
/// deadlines have moved.
const DUE_ROUNDS: u32 = 16;

/// Timer records that it looks at after that, to find one entry that is due behind more of them.
const DUE_LOOKED_AT: usize = 64;

impl<K: Hash + Eq, V, S: BuildHasher> Shard<K, V, S> {
    /// Brings the weight within what was lent: borrows, then removes what is due, then evicts. What
    /// was stored just now stays: if it alone is more than the shard was lent, the rest is noted as
    /// `wanted`, and is taken from other shards after this one's lock is released. So is it noted
    /// if the cache is still too large for a capacity that has shrunk: pinned entries kept what
    /// they had been lent, and this one may be stored in the place of one of them.
    pub(super) fn make_room(&mut self, stored: Slot, now: u64) {
        while self.store.weight() > self.lent {
            let need = self.store.weight() - self.lent;
            let got = self.rules.account.borrow(need);
            self.lent += got;
            if got >= need {
                return;
            }
            if self.make_room_of_due(now) {
                continue;
            }
            if !self.evict_one(Some(stored), now) {
                let lacks = self.store.weight() - self.lent;
                self.effects.wanted = ShardRequest::Room(lacks);
                return;
            }
        }
        if self.rules.account.debt() > 0 {
            self.effects.wanted = ShardRequest::RepayDebt;
        }
    }

    /// Evicts the entry that the policy would rather lose, though not `kept`; `false` when all are
    /// pinned. If its time is over, it leaves for that: records of other timers were before its
    /// own.
    #[inline(always)]
    fn evict_one(&mut self, kept: Option<Slot>, now: u64) -> bool {
        let place_of = |key: &K| self.rules.place_of(key);
        let Some(evicted) = self.store.evict_other(kept, &place_of) else {
            return false;
        };
        self.evicted(evicted, now);
        true
    }

    /// Files an entry that was evicted.
    #[inline(always)]
    pub(super) fn evicted(&mut self, evicted: Removed<K, V>, now: u64) {
        let is_dead = evicted.deadline.is_some_and(|deadline| deadline <= now);
        // Nearly all: nobody drops it or is told of it, and it leaves nothing else behind.
        if !needs_drop::<(K, V)>()
            && !is_dead
            && evicted.label == 0
            && !self.rules.events.has_listener()
        {
            self.effects.counts.add(Count::Eviction, 1);
            self.removals += 1;
            return;
        }
        let cause = match is_dead {
            true => RemovalCause::Expired,
            false => RemovalCause::Evicted,
        };
        self.made_room(evicted, cause, now);
    }

    /// Returns whether one eviction makes room for an entry of this weight: nothing can be
    /// borrowed, nothing is due, and there is no debt.
    #[inline(always)]
    pub(crate) fn must_evict_for(&self, weight: u32, now: u64) -> bool {
        self.store.weight() + u64::from(weight) > self.lent
            && !self.rules.account.may_lend()
            && self.rules.account.debt() == 0
            && !self.has_due(now)
    }

    /// Returns whether the driver would have something to do.
    #[inline(always)]
    fn has_due(&self, now: u64) -> bool {
        // What was stored by this very call is not published yet.
        self.published <= now
            || self.republish && self.store.next_deadline().is_some_and(|next| next <= now)
    }

    #[inline(always)]
    fn made_room(&mut self, removed: Removed<K, V>, cause: RemovalCause, now: u64) {
        let cause = self.rules.cause_of(removed.label, cause);
        self.effects.removed(&self.rules, removed, cause, now);
        self.removals += 1;
    }

    /// Removes a few entries that are due; `false` when it finds none. As long as none of the timer
    /// records that it meets is of an entry that is due, it goes on, [`DUE_ROUNDS`] times at most;
    /// then it looks past [`DUE_LOOKED_AT`] more. So an insertion takes no longer however much time
    /// has passed.
    #[inline]
    fn make_room_of_due(&mut self, now: u64) -> bool {
        self.has_due(now) && self.remove_due(now)
    }

    fn remove_due(&mut self, now: u64) -> bool {
        let before = self.store.len();
        for _ in 0..DUE_ROUNDS {
            let progress = self.expire(now, DUE_BEFORE_EVICTION);
            if self.store.len() < before {
                return true;
            }
            if !progress.backlog {
                return false;
            }
        }
        let place_of = |key: &K| self.rules.place_of(key);
        let Some(due) = self.store.expire_one(now, DUE_LOOKED_AT, &place_of) else {
            return false;
        };
        self.made_room(due, RemovalCause::Expired, now);
        true
    }

    /// Takes `weight` of the loan back, evicting for it, and returns what could be had. An
    /// entry that leaves may free more than that: of this, it takes as much as is `missing`, so
    /// that no other entry leaves for it.
    pub(crate) fn reclaim(&mut self, weight: u64, missing: u64, now: u64) -> u64 {
        self.evict_down_to(self.lent.saturating_sub(weight), now);
        let unused = self.lent.saturating_sub(self.store.weight());
        let taken = unused.min(missing);
        self.lent -= taken;
        taken
    }

    /// Removes entries until the shard weighs no more than `target`: first what is due.
    pub(crate) fn evict_down_to(&mut self, target: u64, now: u64) {
        while self.store.weight() > target {
            // Once everything is pinned, the overshoot is the caller's wish.
            if !self.make_room_of_due(now) && !self.evict_one(None, now) {
                return;
            }
        }
    }
}
