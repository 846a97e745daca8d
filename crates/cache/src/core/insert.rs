//! Stores an entry. User code decides about it, before any lock is taken; then it takes one hold of
//! its shard, or more if a closure is computing the key's value.

use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use tidewheel_store::{Attributes, Slot};
use tidewheel_time::Moment;

use crate::core::inner::{Hold, Inner, ShardCell};
use crate::lifetime::{Lifetime, TtlChoice};
use crate::shard::Shard;
use crate::shard::config::own_grace;
use crate::shard::rules::Hashed;
use crate::shard::write::{Latched, Place, Prepared};

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// The time to live of an entry of which nothing but its end is to be kept; `None` if there is
    /// more.
    #[inline(always)]
    pub(crate) fn plain_ttl(&self, lifetime: &Lifetime) -> Option<Option<Duration>> {
        if !self.stores_plainly || !lifetime.is_plain() {
            return None;
        }
        match lifetime.ttl {
            TtlChoice::Configured => Some(self.rules.config.time_to_live),
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
        let needs_time = Self::needs_time(cell, ttl);
        let (hold, now) = self.begin_for(cell, hash, needs_time);
        self.insert_held(hold, hash, key, value, ttl, now);
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
        self.insert_held(self.begin(cell), hash, key, value, ttl, now);
    }

    /// Returns whether the new entry, or any entry of the shard, has an end.
    #[inline(always)]
    fn needs_time(cell: &ShardCell<K, V, S>, ttl: Option<Duration>) -> bool {
        ttl.is_some() || cell.has_deadlines()
    }

    /// Stores an entry of which nothing but its end is to be kept, in a shard that is held.
    #[inline(always)]
    fn insert_held(
        &self,
        mut hold: Hold<'_, K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        ttl: Option<Duration>,
        now: Moment,
    ) {
        let deadline = ttl.map(|ttl| now.end(ttl));
        match hold.overwrite(hash, &key, value, deadline, now.tick()) {
            Ok(()) => hold.settle_overwritten(),
            Err((value, place)) => {
                self.insert_fully(hold, hash, key, value, deadline, now, place);
            }
        }
    }

    /// As [`insert_held`](Self::insert_held), where no value could be overwritten: apart from it,
    /// so that the quick way is compiled into its place.
    #[allow(
        clippy::too_many_arguments,
        reason = "what one caller knows, by value: an entry that is built before the call costs 4 %"
    )]
    #[inline(never)]
    fn insert_fully(
        &self,
        mut hold: Hold<'_, K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        deadline: Option<u64>,
        now: Moment,
        place: Place,
    ) {
        let is_new = matches!(place, Place::New);
        if is_new && hold.must_evict_for(1, now.tick()) {
            hold.exchange(hash, key, value, deadline, now.tick());
            return hold.settle();
        }
        let attributes = Attributes {
            deadline,
            ..Attributes::default()
        };
        let prepared = Prepared {
            attributes,
            tags: self.rules.tags.hold_none(),
            now,
            fits: true,
        };
        self.insert_prepared(hold, hash, key, value, &prepared, place);
    }

    /// Stores a prepared entry.
    pub(crate) fn insert(&self, hash: Hashed, key: K, value: V, prepared: &Prepared<'_>) {
        let hold = self.begin(self.cell(hash));
        self.insert_prepared(hold, hash, key, value, prepared, Place::Unknown);
    }

    /// Stores a prepared entry in a shard that is held.
    #[inline(always)]
    fn insert_prepared(
        &self,
        mut hold: Hold<'_, K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
        place: Place,
    ) {
        let late = match place {
            Place::New => {
                hold.put_new(hash, key, value, prepared);
                None
            }
            Place::Unknown => hold.put_unless_latched(hash, key, value, prepared),
        };
        hold.settle();
        if let Some(late) = late {
            self.insert_late(hash, late, prepared);
        }
    }

    /// Waits until the key's latch is open, and stores the entry then.
    #[cold]
    #[inline(never)]
    fn insert_late(&self, hash: Hashed, late: Latched<K, V>, prepared: &Prepared<'_>) {
        let mut waiting = Some(late);
        while let Some(Latched { latch, key, value }) = waiting {
            latch.wait_open();
            waiting = self.change(self.cell(hash), |shard, _| {
                shard.put_unless_latched(hash, key, value, prepared)
            });
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Everything about an entry that is about to be stored with
    /// [`Shard::put`](crate::shard::Shard::put): all user code that decides about it runs here,
    /// before the lock.
    #[inline(always)]
    pub(crate) fn prepare(
        &self,
        hash: Hashed,
        key: &K,
        value: &V,
        lifetime: &Lifetime,
    ) -> Prepared<'_> {
        self.prepare_at(hash, key, value, lifetime, || self.now())
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
        let config = &self.rules.config;
        let weight = config.weight(key, value);
        let now = clock();
        let old = config
            .wants_old(lifetime)
            .then(|| self.left_of(hash, key))
            .flatten();
        let default_ttl = config.default_ttl(key, value, old);
        let tags = self.rules.tags.hold(&lifetime.tags);
        let random = hash.0 ^ now.0.rotate_left(32);
        let end = match &lifetime.ttl {
            TtlChoice::Configured => default_ttl.map(|ttl| config.end_of(ttl, now, random)),
            TtlChoice::For(ttl) => Some(config.end_of(*ttl, now, random)),
            TtlChoice::Never => None,
            TtlChoice::At(at) => {
                let left = at.duration_since(self.time.wall()).unwrap_or_default();
                Some(now.end(left))
            }
            TtlChoice::Since(begin, ttl) => Some(self.time.moment(*begin).min(now).end(*ttl)),
            TtlChoice::AtTick(tick) => Some(*tick),
        };
        let cap = config.cap(lifetime, now, random);
        let own_grace = own_grace(lifetime.stale_for);
        let grace = config.grace(own_grace);
        let idle_end = config.time_to_idle.map(|idle| now.end(idle));
        let (deadline, limit) = match (end, idle_end) {
            (Some(end), Some(idle_end)) => (Some(end.min(idle_end)), Some(end)),
            (end, idle_end) => (end.or(idle_end), None),
        };
        let attributes = Attributes {
            deadline: deadline.map(|deadline| deadline.saturating_add(grace)),
            weight,
            soft: config.soft(lifetime.fresh_for, end, now),
            label: tags.label(),
            limit: limit.map(|limit| limit.saturating_add(grace)),
            notes: config.stated(lifetime, cap).notes(),
            grace: own_grace,
        };
        Prepared {
            attributes,
            tags,
            now,
            fits: self.fits(hash, key, weight),
        }
    }

    /// As [`prepare`](Self::prepare). Without a lifetime the entry lives as long as the one in its
    /// place would have: that is found [under the lock](Self::as_before).
    pub(crate) fn prepare_over(
        &self,
        hash: Hashed,
        key: &K,
        value: &V,
        lifetime: Option<&Lifetime>,
    ) -> Prepared<'_> {
        if let Some(lifetime) = lifetime {
            return self.prepare(hash, key, value, lifetime);
        }
        let weight = self.rules.config.weight(key, value);
        let attributes = Attributes {
            weight,
            ..Attributes::default()
        };
        Prepared {
            attributes,
            tags: self.rules.tags.hold_none(),
            now: self.now(),
            fits: self.fits(hash, key, weight),
        }
    }

    /// A prepared entry that lives as long as the one in its place would have, with its tags.
    pub(crate) fn as_before(
        &self,
        shard: &Shard<K, V, S>,
        slot: Slot,
        prepared: &Prepared<'_>,
        now: Moment,
    ) -> Prepared<'_> {
        let old = shard.store.attributes(slot);
        let attributes = Attributes {
            weight: prepared.attributes.weight,
            ..self.rules.config.attributes_after_overwrite(old, now)
        };
        Prepared {
            attributes,
            tags: self.rules.tags.hold_again(attributes.label),
            now,
            fits: prepared.fits,
        }
    }

    /// Returns the remaining time of a key's live entry; the inner `None` means that it has no end.
    fn left_of(&self, hash: Hashed, key: &K) -> Option<Option<Duration>> {
        let (shard, now) = self.read_now(self.cell(hash));
        let slot = shard.find_live(hash, key, now)?;
        Some(shard.end_of(slot).map(|end| now.until(end)))
    }

    /// Returns whether an entry may be stored under a key; makes way for a heavy one.
    pub(crate) fn fits(&self, hash: Hashed, key: &K, weight: u32) -> bool {
        weight <= 1 || self.make_way(hash, key, weight)
    }
}
