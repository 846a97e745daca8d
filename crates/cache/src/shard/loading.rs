//! A load begins and ends. A key is claimed: the caller leads the load, joins another's, or has an
//! answer. In the end the flight leaves the table, and what the loader says is stored or
//! remembered, unless a writer has superseded the load or an invalidation has overtaken it.
//!
//! A load that has failed leaves an old value of its key where it is, dead or alive. The value's
//! soft deadline is past, and becomes the time of the next try. So nothing is allocated for a
//! failing origin, however many keys are asked for.

use std::any::{Any, TypeId};
use std::convert::Infallible;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;

use tidewheel_store::{Slot, Soft, TypedStore};
use tidewheel_time::Moment;

use crate::planted::{Fault, is_planted};
use crate::removal::RemovalCause;
use crate::shard::Shard;
use crate::shard::config::Config;
use crate::shard::flight::{Flight, Negative, Phase, REENTRY, SUSPENDED};
use crate::shard::rules::Hashed;
use crate::shard::tags::{LentTags, Tags};
use crate::shard::write::Prepared;
use crate::stats::Count;

/// A caller without an answer.
pub(crate) struct Claimant<'a, K> {
    pub(crate) hash: Hashed,
    pub(crate) key: &'a Arc<K>,
    /// True if an absence is an answer.
    pub(crate) absent: bool,
    /// True if the caller blocks its thread while it waits.
    pub(crate) blocks: bool,
}

/// The result of a claim.
pub(crate) enum Claim<'r, V> {
    /// Look again: there is an answer now.
    Again,
    /// With the tags of a live entry.
    Lead(Arc<Flight<V>>, Option<LentTags<'r>>),
    /// Wait; the flight counts on it.
    Join(Arc<Flight<V>>),
}

impl<K: Eq, V, S> Shard<K, V, S> {
    /// Claims a key for a caller whose loader may fail with `E`.
    ///
    /// # Errors
    ///
    /// Why it would wait for itself, or keep its thread from going on with the load that it waits
    /// for.
    pub(crate) fn claim<'r, E: Send + Sync + 'static>(
        &mut self,
        tags: &'r Tags,
        by: &Claimant<'_, K>,
        now: Moment,
    ) -> Result<Claim<'r, V>, &'static str> {
        let (hash, key) = (by.hash, &**by.key);
        let slot = self.find_live(hash, key, now);
        let flight = self.flights.find(hash.0, |stored| stored == key).cloned();
        let flight = flight.filter(|_| !is_planted(Fault::TwoLeads));
        let is_answered = match slot {
            Some(slot) => flight.is_some() || !self.is_due(slot, now),
            None => {
                let answer = self.stand_in::<E, _>(hash, key, by.absent, now);
                answer.is_some()
            }
        };
        if is_answered {
            return Ok(Claim::Again);
        }
        match flight {
            None => {
                let label = slot.map_or(0, |slot| self.store.label_of(slot));
                let tags = tags.lend_any(label);
                let key = Arc::clone(by.key);
                let flight = self.flights.start(hash.0, key, Phase::Running);
                Ok(Claim::Lead(flight, tags))
            }
            // It has a flight, so it has no live entry: see above.
            Some(flight) if flight.take() => Ok(Claim::Lead(flight, None)),
            Some(flight) if flight.is_own() => Err(REENTRY),
            Some(flight) if by.blocks && flight.is_suspended_here() => Err(SUSPENDED),
            Some(flight) => {
                flight.join();
                Ok(Claim::Join(flight))
            }
        }
    }
}

/// The load that ends.
pub(crate) struct Landing<'a, V> {
    pub(crate) hash: Hashed,
    pub(crate) flight: &'a Arc<Flight<V>>,
    /// The tags of the live entry that was loaded again. If one was invalidated meanwhile, what the
    /// loader says may be as old as the entry.
    pub(crate) tags: Option<&'a LentTags<'a>>,
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

impl<K: Hash + Eq, V, S: BuildHasher> Shard<K, V, S> {
    /// Takes the flight out of the table; tells whether what the loader says counts.
    fn land(&mut self, landing: &Landing<'_, V>, key: &Arc<K>) -> bool {
        let Some(ended) = self.flights.remove(landing.hash.0, landing.flight) else {
            return false;
        };
        // The table's is the same key, or that of the first leader.
        if !Arc::ptr_eq(&ended.key, key) {
            self.effects.garbage.keys.push(ended.key);
        }
        !self.rules.tags.are_overtaken(landing.tags)
    }

    /// Stores a loaded value; `lives_on` if it is the old one, which has not changed. Gives the key
    /// back if the value does not count; it stays where it was then.
    pub(crate) fn land_value(
        &mut self,
        landing: &Landing<'_, V>,
        key: Arc<K>,
        value: &mut Option<V>,
        prepared: &Prepared<'_>,
        lives_on: bool,
    ) -> Option<Arc<K>> {
        if !self.land(landing, &key) {
            return Some(key);
        }
        let (key, new) = match own(key, value) {
            Ok(entry) => entry,
            Err(key) => return Some(key),
        };
        let hash = landing.hash;
        self.forget_negative(hash, |stored| *stored == key);
        match lives_on {
            true => self.live_on(hash, key, new, prepared),
            false => self.put(hash, key, new, prepared),
        };
        None
    }

    /// The value is for its caller alone: an old one goes.
    pub(crate) fn land_private(&mut self, landing: &Landing<'_, V>, key: &Arc<K>, now: Moment) {
        if self.land(landing, key) {
            self.forget_negative(landing.hash, |stored| *stored == **key);
            self.remove(landing.hash, &**key, RemovalCause::Removed, now);
        }
    }

    /// There is no value: an absence removes an old one, an error keeps it for a while. Remembers
    /// it for `ttl`. Gives the key back if it is not kept.
    pub(crate) fn land_negative(
        &mut self,
        landing: &Landing<'_, V>,
        key: Arc<K>,
        negative: &Negative,
        ttl: Option<Duration>,
        now: Moment,
    ) -> Option<Arc<K>> {
        if !self.land(landing, &key) {
            return Some(key);
        }
        let hash = landing.hash;
        match negative {
            Negative::Absent => {
                self.remove(hash, &*key, RemovalCause::Removed, now);
            }
            Negative::Error(_) => self.try_later(hash, &key, now),
        }
        // This answer is the latest, remembered or not.
        self.forget_negative(hash, |stored| *stored == *key);
        let (Some(ttl), Some(new)) = (ttl, self.rules.config.new_memory) else {
            return Some(key);
        };
        if self.closed {
            return Some(key);
        }
        let key = Arc::into_inner(key)?;
        let deadline = now.end(ttl);
        let evicted = self.negatives.memory(new).remember(
            hash.place(),
            (key, negative.clone()),
            deadline,
            now.tick(),
            self.rules.config.negatives_per_shard,
            &|key| self.rules.place_of(key),
        );
        if evicted.is_some() {
            self.effects.counts.add(Count::NegativeEvicted, 1);
        }
        self.effects.garbage.forgotten(evicted);
        self.scheduled(Some(deadline));
        None
    }
}

/// The time for which a failing origin is not asked again if the builder sets none, in ticks.
pub(crate) const ERROR_BACKOFF: u64 = 1000;

/// The time after which a failed refresh is tried again if the entry has no end.
const RETRY_TICKS: u64 = 60_000;

/// Returns how long to remember an error; `None` if it has another type.
pub(crate) type ErrorTtl = Box<dyn Fn(&(dyn Any + Send + Sync)) -> Option<Duration> + Send + Sync>;

/// Returns whether a loader with this error type can fail at all.
pub(crate) fn may_fail<E: 'static>() -> bool {
    TypeId::of::<E>() != TypeId::of::<Infallible>()
}

impl<K: Eq, V, S> Shard<K, V, S> {
    /// A load has failed. An old value that needs a new one is served in its place for a while.
    pub(crate) fn try_later(&mut self, hash: Hashed, key: &K, now: Moment) {
        let Some(slot) = self.find(hash, key) else {
            return;
        };
        let is_live = self.is_live(slot, now);
        let is_fresh = is_live && !self.is_due(slot, now);
        if !is_fresh && self.is_kept(slot, now) {
            self.rules
                .config
                .put_off(&mut self.store, slot, is_live, now.tick());
        }
    }
}

impl<K, V> Config<K, V> {
    /// A load has failed. The next one is tried after half of the time that the entry has left, so
    /// that a failing origin is asked a few times before the end; but not before the back-off is
    /// over.
    fn put_off(&self, store: &mut TypedStore<K, V>, slot: Slot, is_live: bool, now: u64) {
        let attributes = store.attributes(slot);
        let left = match self.hard_end(&attributes) {
            _ if !is_live => 0,
            Some(end) => end.saturating_sub(now) / 2,
            None => RETRY_TICKS,
        };
        let wait = left.max(self.error_backoff);
        store.set_soft(slot, Soft::again_at(now.saturating_add(wait)));
    }

    /// Returns how long an error or absence is remembered. Runs user code: without any lock.
    /// `absent_for` is what the loader wants for an absence.
    pub(crate) fn remembered_for(
        &self,
        negative: &Negative,
        absent_for: Option<Duration>,
    ) -> Option<Duration> {
        let own = match negative {
            Negative::Absent => absent_for,
            Negative::Error(error) => self.error_ttls.iter().find_map(|ttl| ttl(&**error)),
        };
        own.or(self.negative_ttl).filter(|ttl| !ttl.is_zero())
    }
}
