//! Stores an entry: user code decides about it before the lock is taken, and the change is made
//! under it.

use std::hash::{BuildHasher, Hash};
use std::mem::needs_drop;
use std::sync::Arc;
use std::time::Duration;

use tidewheel_store::{Attributes, Removed, Slot};
use tidewheel_time::Moment;

use crate::core::config::{Config, own_grace};
use crate::core::flight::Flight;
use crate::core::hash::Hashed;
use crate::core::inner::{Hold, Inner};
use crate::core::removal::RemovalCause;
use crate::core::shard::{Shard, ShardCell};
use crate::core::tags::HeldTags;
use crate::core::write::AfterUnlock;
use crate::lifetime::{Lifetime, TtlChoice};
use crate::stats::Count;
use crate::time::Time;

/// An entry that is about to be stored.
pub(crate) struct Prepared<'a> {
    pub(crate) attributes: Attributes,
    /// The tags that `attributes.label` stands for.
    pub(crate) tags: HeldTags<'a>,
    pub(crate) now: Moment,
    /// True if the entry is no heavier than the whole capacity.
    pub(crate) fits: bool,
}

impl<'a> Prepared<'a> {
    /// Returns whether no reader could get the entry, not even in place of an error.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        let deadline = self.attributes.deadline;
        deadline.is_some_and(|deadline| deadline <= self.now.tick())
    }

    /// Takes other attributes, tags included.
    pub(crate) fn become_as(&mut self, attributes: Attributes, tags: HeldTags<'a>) {
        debug_assert_eq!(attributes.label, tags.label());
        self.attributes = attributes;
        self.tags = tags;
    }
}

/// An entry that is stored once a latch opens.
struct DeferredInsert<K, V> {
    latch: Arc<Flight<V>>,
    key: K,
    value: V,
}

/// A key and a value, if this is the last who has the key: the table of flights has just let it go.
/// Else the key is for the caller to drop without the lock, and the value stays.
pub(crate) fn own<K, V>(key: Arc<K>, value: &mut Option<V>) -> Result<(K, V), Arc<K>> {
    let key = Arc::try_unwrap(key)?;
    match value.take() {
        Some(value) => Ok((key, value)),
        None => Err(Arc::new(key)),
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Everything about an entry that is about to be stored with [`put`](Self::put): all user code
    /// that decides about it runs here, before the lock.
    #[inline(always)]
    pub(crate) fn prepare(
        &self,
        hash: Hashed,
        key: &K,
        value: &V,
        lifetime: &Lifetime,
    ) -> Prepared<'_> {
        self.prepare_at(hash, key, value, lifetime, || self.time.now())
    }

    /// As [`prepare`](Self::prepare), at a time that `clock` tells.
    #[inline(always)]
    pub(crate) fn prepare_at(
        &self,
        hash: Hashed,
        key: &K,
        value: &V,
        lifetime: &Lifetime,
        clock: impl FnOnce() -> Moment,
    ) -> Prepared<'_> {
        let weight = self.config.weight(key, value);
        let now = clock();
        let old = self
            .config
            .wants_old(lifetime)
            .then(|| self.left_of(hash, key))
            .flatten();
        let ttl = self.config.default_ttl(key, value, old);
        let tags = self.tags.hold(&lifetime.tags);
        let random = hash.0 ^ now.0.rotate_left(32);
        let attributes =
            self.config
                .attributes(lifetime, ttl, weight, tags.label(), &self.time, now, random);
        Prepared {
            attributes,
            tags,
            now,
            fits: self.fits(hash, key, weight),
        }
    }

    /// Returns the remaining time of a key's live entry; the inner `None` means that it has no end.
    fn left_of(&self, hash: Hashed, key: &K) -> Option<Option<Duration>> {
        let shard = self.read(self.cell(hash));
        let slot = Self::find(&shard, hash, key)?;
        let live = self.is_live(&shard.store, slot);
        live.then(|| self.end_of(&shard.store, slot).map(|end| self.until(end)))
    }

    /// Returns whether an entry may be stored under a key; makes way for a heavy one.
    pub(crate) fn fits(&self, hash: Hashed, key: &K, weight: u32) -> bool {
        weight <= 1 || self.make_way(hash, key, weight)
    }

    /// The time to live of an entry of which nothing but its end is to be kept; `None` if there is
    /// more.
    #[inline(always)]
    pub(crate) fn plain_ttl(&self, lifetime: &Lifetime) -> Option<Option<Duration>> {
        if !self.stores_plainly || !lifetime.is_plain() {
            return None;
        }
        match lifetime.ttl {
            TtlChoice::Configured => Some(self.config.time_to_live),
            TtlChoice::For(ttl) => Some(Some(ttl)),
            TtlChoice::Never => Some(None),
            _ => None,
        }
    }

    /// Stores an entry of which nothing but its end is to be kept. Where no entry has an end, the
    /// clock is not read.
    #[inline(always)]
    pub(crate) fn insert_plainly(&self, hash: Hashed, key: K, value: V, ttl: Option<Duration>) {
        let cell = self.cell(hash);
        // The clock is read under the lock if it is not a user's: meanwhile the memory comes that
        // was asked for.
        let early = match Self::needs_time(cell, ttl) {
            true => self.time.given_now(),
            false => Some(Moment(0)),
        };
        let mut hold = self.begin(cell);
        hold.change(|shard| shard.store.expect(hash.place()));
        let now = early.unwrap_or_else(|| self.time.now());
        self.insert_held(&mut hold, hash, key, value, ttl, now);
    }

    /// As [`insert_plainly`](Self::insert_plainly), at a time that `clock` tells.
    pub(crate) fn insert_plainly_at(
        &self,
        hash: Hashed,
        key: K,
        value: V,
        ttl: Option<Duration>,
        clock: impl FnOnce() -> Moment,
    ) {
        let cell = self.cell(hash);
        let now = match Self::needs_time(cell, ttl) {
            true => clock(),
            false => Moment(0),
        };
        self.insert_held(&mut self.begin(cell), hash, key, value, ttl, now);
    }

    /// Returns whether the new entry, or any entry of the shard, has an end.
    #[inline(always)]
    fn needs_time(cell: &ShardCell<K, V>, ttl: Option<Duration>) -> bool {
        ttl.is_some() || cell.has_deadlines()
    }

    /// Stores an entry of which nothing but its end is to be kept, in a shard that is held.
    #[inline(always)]
    fn insert_held(
        &self,
        hold: &mut Hold<'_, K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        ttl: Option<Duration>,
        now: Moment,
    ) {
        let deadline = ttl.map(|ttl| now.end(ttl));
        let tick = now.tick();
        let rest = hold.change(|shard| self.overwrite(shard, hash, &key, value, deadline, tick));
        match rest {
            Ok(()) => hold.end_soon(),
            Err((value, true)) => self.insert_new(hold, hash, key, value, deadline, now),
            Err((value, false)) => self.insert_closely(hold, hash, key, value, deadline, now),
        }
    }

    /// As [`insert_held`](Self::insert_held), of a key that has no entry, with nothing in the way.
    #[inline(never)]
    fn insert_new(
        &self,
        hold: &mut Hold<'_, K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        deadline: Option<u64>,
        now: Moment,
    ) {
        let prepared = self.prepared_plainly(deadline, now);
        let after = hold.change(|shard| {
            let slot = self.add(shard, hash, key, value, &prepared);
            self.is_stored(shard, slot, &prepared);
            AfterUnlock::take(shard)
        });
        hold.end();
        self.finish_after_unlock(hold.cell(), after);
    }

    /// As [`insert_held`](Self::insert_held), whatever is in the way.
    #[inline(never)]
    fn insert_closely(
        &self,
        hold: &mut Hold<'_, K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        deadline: Option<u64>,
        now: Moment,
    ) {
        let prepared = self.prepared_plainly(deadline, now);
        self.insert_prepared(hold, hash, key, value, &prepared);
    }

    #[inline(always)]
    fn prepared_plainly(&self, deadline: Option<u64>, now: Moment) -> Prepared<'_> {
        let attributes = Attributes {
            deadline,
            ..Attributes::default()
        };
        Prepared {
            attributes,
            tags: self.tags.hold_none(),
            now,
            fits: true,
        }
    }

    /// Stores a prepared entry.
    pub(crate) fn insert(&self, hash: Hashed, key: K, value: V, prepared: &Prepared<'_>) {
        self.insert_prepared(&mut self.begin(self.cell(hash)), hash, key, value, prepared);
    }

    /// Stores a prepared entry in a shard that is held.
    #[inline(always)]
    fn insert_prepared(
        &self,
        hold: &mut Hold<'_, K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) {
        let (late, after) = hold.change(|shard| {
            let late = self.put_any(shard, hash, key, value, prepared);
            (late, AfterUnlock::take(shard))
        });
        hold.end();
        self.finish_after_unlock(self.cell(hash), after);
        if let Some(late) = late {
            self.insert_late(hash, late, prepared);
        }
    }

    /// As [`put_over`](Self::put_over), whether or not something is in progress.
    #[inline(always)]
    fn put_any(
        &self,
        shard: &mut Shard<K, V>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> Option<DeferredInsert<K, V>> {
        // What nobody drops comes here seldom.
        if needs_drop::<(K, V)>() && shard.is_quiet() {
            self.put_in_place(shard, hash, key, value, prepared);
            return None;
        }
        self.put_over(shard, hash, key, value, prepared)
    }

    /// As [`put`](Self::put), where something is in progress. Gives back what is to be stored once
    /// a latch opens.
    #[cold]
    #[inline(never)]
    fn put_over(
        &self,
        shard: &mut Shard<K, V>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> Option<DeferredInsert<K, V>> {
        if let Some(latch) = shard.writing(hash, |stored| *stored == key) {
            return Some(DeferredInsert { latch, key, value });
        }
        self.put(shard, hash, key, value, prepared);
        None
    }

    /// Waits until the key's latch is open, and stores the entry then.
    #[cold]
    #[inline(never)]
    fn insert_late(&self, hash: Hashed, late: DeferredInsert<K, V>, prepared: &Prepared<'_>) {
        let mut waiting = Some(late);
        while let Some(DeferredInsert { latch, key, value }) = waiting {
            latch.wait_open();
            waiting = self.write(self.cell(hash), |shard| {
                self.put_over(shard, hash, key, value, prepared)
            });
        }
    }

    /// Stores a prepared entry under the shard's lock; tells whether it did. A closed cache drops
    /// it.
    pub(crate) fn put(
        &self,
        shard: &mut Shard<K, V>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> bool {
        self.put_in_place(shard, hash, key, value, prepared)
    }

    /// As [`put`](Self::put), compiled into its place.
    #[inline(always)]
    fn put_in_place(
        &self,
        shard: &mut Shard<K, V>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> bool {
        if shard.closed {
            shard.garbage.push(key, value);
            return false;
        }
        let attributes = prepared.attributes;
        if !prepared.fits || prepared.is_over() || !self.tags.is_current(attributes.label) {
            self.turn_away(shard, hash, key, value, prepared);
            return prepared.fits;
        }
        let slot = match Self::find(shard, hash, &key) {
            Some(slot) => self.replace(shard, slot, key, value, prepared),
            None => self.add_apart(shard, hash, key, value, prepared),
        };
        self.is_stored(shard, slot, prepared);
        true
    }

    /// Counts an entry that is in the store now, and makes room if it takes more than there is.
    // Not before it is: a user's `Eq` may have panicked.
    #[inline(always)]
    fn is_stored(&self, shard: &mut Shard<K, V>, slot: Slot, prepared: &Prepared<'_>) {
        self.counters.add(Count::Insert, 1);
        shard.scheduled(prepared.attributes.deadline);
        if shard.store.weight() > shard.lent {
            self.make_room(shard, slot, prepared.now.tick());
        }
    }

    /// As [`add`](Self::add), compiled once.
    #[inline(never)]
    fn add_apart(
        &self,
        shard: &mut Shard<K, V>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> Slot {
        self.add(shard, hash, key, value, prepared)
    }

    /// Stores an entry whose key is not in the store. If nothing but an eviction can make room for
    /// it, that is done in the same step.
    #[inline(always)]
    fn add(
        &self,
        shard: &mut Shard<K, V>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> Slot {
        let place_of = |key: &K| self.place_of(key);
        let (lent, tick) = (shard.lent, prepared.now.tick());
        let place = hash.place();
        let must_evict = self.must_evict_for(shard, prepared.attributes.weight, tick);
        let store = &mut shard.store;
        let slot = if must_evict {
            let (slot, evicted) = store.exchange(
                place,
                key,
                value,
                prepared.attributes,
                tick,
                lent,
                &place_of,
            );
            if let Some(evicted) = evicted {
                self.evicted(shard, evicted, tick);
            }
            slot
        } else {
            store.insert(
                place,
                key,
                value,
                prepared.attributes,
                tick,
                lent,
                &place_of,
            )
        };
        prepared.tags.pass_on();
        slot
    }

    /// Stores an entry in the place of another one, dead or alive, which leaves.
    #[inline(always)]
    fn replace(
        &self,
        shard: &mut Shard<K, V>,
        slot: Slot,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> Slot {
        let Attributes { deadline, .. } = prepared.attributes;
        let tick = prepared.now.tick();
        if !prepared.attributes.is_plain() {
            return self.replace_closely(shard, slot, key, value, prepared);
        }
        let until = tick + self.config.grace;
        match shard
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
                self.file(shard, old, RemovalCause::Replaced, tick);
                slot
            }
            Err(value) => self.replace_closely(shard, slot, key, value, prepared),
        }
    }

    /// As [`replace`](Self::replace), where one of the two may have more than its end, or the old
    /// one may be dead.
    #[inline(never)]
    fn replace_closely(
        &self,
        shard: &mut Shard<K, V>,
        slot: Slot,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> Slot {
        let attributes = prepared.attributes;
        let tick = prepared.now.tick();
        let deadline = shard.store.deadline(slot);
        let cause = self
            .dead_by(&shard.store, slot)
            .unwrap_or(RemovalCause::Replaced);
        if cause != RemovalCause::Replaced {
            // A pin is one entry's: this is another one, in the same place.
            shard.store.set_pinned(slot, false);
        }
        let label = shard.store.label_of(slot);
        let weight = shard.store.weight_of(slot);
        let old = shard.store.replace(slot, value, attributes, tick);
        prepared.tags.pass_on();
        if attributes.weight < weight {
            self.give_back(shard);
        }
        let removed = Removed {
            key,
            value: old,
            deadline,
            weight,
            label,
        };
        self.file_removal(shard, removed, cause, tick);
        slot
    }

    /// Does not store an entry that is heavier than the whole capacity, or one whose time is over
    /// at once, or one of whose tags was invalidated while it was on its way: these two count as
    /// stored before that. An old value of the key goes too.
    #[cold]
    fn turn_away(
        &self,
        shard: &mut Shard<K, V>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) {
        let now = prepared.now.tick();
        if let Some((old, dead_by)) = self.take(shard, hash, &key) {
            let cause = dead_by.unwrap_or(RemovalCause::Replaced);
            self.file_removal(shard, old, cause, now);
        }
        let removed = Removed {
            key,
            value,
            deadline: prepared.attributes.deadline,
            weight: prepared.attributes.weight,
            label: prepared.tags.pass_on(),
        };
        if prepared.fits {
            self.counters.add(Count::Insert, 1);
            let cause = self.cause_of(removed.label, RemovalCause::Expired);
            self.file_removal(shard, removed, cause, now);
        } else {
            self.refused(shard, removed, now);
        }
    }
}

impl<K, V> Config<K, V> {
    /// Everything about an entry that is stored now. `label` stands for its tags.
    #[allow(
        clippy::too_many_arguments,
        reason = "each is a different kind of fact, and there is one caller"
    )]
    #[inline(always)]
    fn attributes(
        &self,
        lifetime: &Lifetime,
        default_ttl: Option<Duration>,
        weight: u32,
        label: u64,
        time: &Time,
        now: Moment,
        random: u64,
    ) -> Attributes {
        let end = match &lifetime.ttl {
            TtlChoice::Configured => default_ttl.map(|ttl| self.end_of(ttl, now, random)),
            TtlChoice::For(ttl) => Some(self.end_of(*ttl, now, random)),
            TtlChoice::Never => None,
            TtlChoice::At(at) => {
                let left = at.duration_since(time.wall()).unwrap_or_default();
                Some(now.end(left))
            }
            TtlChoice::Since(begin, ttl) => Some(time.moment(*begin).min(now).end(*ttl)),
            TtlChoice::AtTick(tick) => Some(*tick),
        };
        let cap = self.cap(lifetime, now, random);
        let soft = self.soft(lifetime.fresh_for, end, now);
        let own_grace = own_grace(lifetime.stale_for);
        let grace = self.grace(own_grace);
        let idle_end = self.time_to_idle.map(|idle| now.end(idle));
        let (deadline, limit) = match (end, idle_end) {
            (Some(end), Some(idle_end)) => (Some(end.min(idle_end)), Some(end)),
            (end, idle_end) => (end.or(idle_end), None),
        };
        Attributes {
            deadline: deadline.map(|deadline| deadline.saturating_add(grace)),
            weight,
            soft,
            label,
            limit: limit.map(|limit| limit.saturating_add(grace)),
            notes: self.stated(lifetime, cap).notes(),
            grace: own_grace,
        }
    }
}
