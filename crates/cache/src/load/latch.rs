//! A change of one key by a closure, which the key's other writers wait for.
//!
//! A latch in the table of flights keeps the key's other writers waiting, each on its thread, while
//! the closure runs: once, without any shard's lock, on a clone of the old value. Readers see the
//! old value meanwhile, and other keys are not concerned. If the closure panics, the latch opens
//! and nothing has changed. Expiry, eviction and invalidation by tag or of all do not wait: an
//! update of an entry that goes while the closure runs is none, and the answer says so. The answer
//! is what was stored, and nothing else.

use std::convert::Infallible;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use tidewheel_time::Moment;

use crate::core::inner::Inner;
use crate::lifetime::Lifetime;
use crate::loaded::Loaded;
use crate::quiet::Quiet;
use crate::removal::RemovalCause;
use crate::shard::Shard;
use crate::shard::flight::{Flight, Phase};
use crate::shard::loading::own;
use crate::shard::rules::Hashed;
use crate::shard::write::Prepared;
use crate::stats::Counters;

/// The decision of a closure of [`Entry::compute`](crate::Entry::compute).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compute<V> {
    /// Change nothing.
    Keep,
    /// Store a value, with its lifetime (the configured one if it has none of its own).
    Put(Loaded<V>),
    /// Store a value that lives as long as the old one would have, with its tags; an idle time
    /// begins again. Without an old one, as `Put`.
    Update(V),
    /// Remove the entry.
    Remove,
}

/// The condition under which the value of [`Compute::Put`] is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PutIf {
    /// Unless the old value was invalidated meanwhile: that came after this change.
    NotInvalidated,
    /// Only if the old value has not gone meanwhile for any reason.
    StillThere,
}

/// An open door behind a closure, however it ends.
struct Latched<'a, K: Hash + Eq, V, S: BuildHasher> {
    inner: &'a Inner<K, V, S>,
    hash: Hashed,
    flight: Arc<Flight<V>>,
    open: bool,
}

impl<K: Hash + Eq, V, S: BuildHasher> Latched<'_, K, V, S> {
    /// Makes the last change under the shard's lock and opens the latch. `change` is told whether
    /// the shard was emptied meanwhile.
    fn open<R>(mut self, change: impl FnOnce(&mut Shard<K, V, S>, bool, Moment) -> R) -> R {
        let inner = self.inner;
        let result = inner.change(inner.cell(self.hash), |shard, now| {
            let ended = shard.flights.remove(self.hash.0, &self.flight);
            let cleared = ended.as_ref().is_some_and(|ended| ended.cleared);
            // The caller has the key too: this does not drop it.
            drop(ended);
            change(shard, cleared, now)
        });
        self.open = true;
        self.flight.end(None);
        result
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Drop for Latched<'_, K, V, S> {
    fn drop(&mut self) {
        if !self.open {
            self.inner.vacate(self.hash, &self.flight, Phase::Running);
        }
    }
}

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Inner<K, V, S> {
    /// Lets a closure decide what becomes of a key.
    pub(crate) fn compute(
        &self,
        key: K,
        put_if: PutIf,
        change: impl FnOnce(Option<&V>) -> Compute<V>,
    ) -> Computed<V> {
        sure(self.try_compute(key, put_if, |old| Ok(change(old))))
    }

    /// As [`compute`](Self::compute), with a closure that may fail; then nothing changes.
    pub(crate) fn try_compute<E>(
        &self,
        key: K,
        put_if: PutIf,
        change: impl FnOnce(Option<&V>) -> Result<Compute<V>, E>,
    ) -> Result<Computed<V>, E> {
        self.lead(|| self.compute_latched(key, put_if, change))
    }

    fn compute_latched<E>(
        &self,
        key: K,
        put_if: PutIf,
        change: impl FnOnce(Option<&V>) -> Result<Compute<V>, E>,
    ) -> Result<Computed<V>, E> {
        let hash = self.hash(&key);
        let key = Quiet::new(Arc::new(key), &self.counters);
        let latched = self.latch(hash, &key);
        let (old, tags) = {
            let (shard, now) = self.read_now(self.cell(hash));
            let slot = shard.find_live(hash, &**key, now);
            let label = slot.map_or(0, |slot| shard.store.label_of(slot));
            let old = slot.map(|slot| shard.store.value(slot).clone());
            (old, self.rules.tags.lend_any(label))
        };
        let old = Quiet::new(old, &self.counters);
        let (value, lifetime) = match change(old.as_ref())? {
            Compute::Keep => return Ok(old.into_inner().map_or(Computed::Absent, Computed::Kept)),
            Compute::Remove => return Ok(self.compute_removal(latched, &key, old)),
            Compute::Update(value) if old.is_some() => (value, None),
            Compute::Update(value) => (value, Some(Lifetime::configured())),
            Compute::Put(loaded) => (loaded.value, Some(loaded.lifetime)),
        };
        let prepared = self.prepare_over(hash, &key, &value, lifetime.as_ref());
        let had_old = old.is_some();
        let entry = (key.into_inner(), value);
        let computed = self.compute_value(latched, entry, old, |shard, key, cleared, now| {
            let slot = shard.find_live(hash, key, now);
            if lifetime.is_none() {
                return Some((self.as_before(shard, slot?, &prepared, now), true));
            }
            let puts = match put_if {
                _ if !had_old => true,
                // The entry may have been swept since.
                PutIf::NotInvalidated => !cleared && !self.rules.tags.are_overtaken(tags.as_ref()),
                PutIf::StillThere => slot.is_some(),
            };
            puts.then(|| (Prepared { now, ..prepared }, slot.is_some()))
        });
        Ok(computed)
    }

    fn latch(&self, hash: Hashed, key: &Arc<K>) -> Latched<'_, K, V, S> {
        let flight = self.change_unlatched(self.cell(hash), |shard, _| {
            let keys = &mut shard.effects.garbage.keys;
            match shard
                .flights
                .writing(hash.0, |stored| *stored == **key, keys)
            {
                Some(other) => Err(other),
                None => Ok(shard.flights.latch(hash.0, Arc::clone(key))),
            }
        });
        Latched {
            inner: self,
            hash,
            flight,
            open: false,
        }
    }

    fn compute_removal(
        &self,
        latched: Latched<'_, K, V, S>,
        key: &K,
        old: Quiet<'_, Option<V>>,
    ) -> Computed<V> {
        let hash = latched.hash;
        let was_there = latched.open(|shard, _, now| {
            shard.forget_negative(hash, |stored| stored == key);
            shard.remove(hash, key, RemovalCause::Removed, now)
        });
        match was_there {
            true => old.into_inner().map_or(Computed::Absent, Computed::Removed),
            false => Computed::Absent,
        }
    }

    /// Stores a value, unless `prepare`, under the shard's lock, says that it is not to be; with
    /// what that says of it, and of whether it replaces another one. `prepare` is told whether the
    /// shard was emptied meanwhile.
    fn compute_value<'p>(
        &'p self,
        latched: Latched<'_, K, V, S>,
        (key, value): (Arc<K>, V),
        old: Quiet<'_, Option<V>>,
        prepare: impl FnOnce(&Shard<K, V, S>, &K, bool, Moment) -> Option<(Prepared<'p>, bool)>,
    ) -> Computed<V> {
        let hash = latched.hash;
        let result = value.clone();
        let mut value = Some(value);
        let put = latched.open(|shard, cleared, now| {
            let Some((prepared, was_there)) = prepare(shard, &key, cleared, now) else {
                return Err(key);
            };
            shard.forget_negative(hash, |stored| *stored == *key);
            let (key, new) = own(key, &mut value)?;
            let is_stored = shard.put(hash, key, new, &prepared);
            Ok(is_stored.then_some(was_there))
        });
        let stored = put.as_ref().ok().copied().flatten();
        self.counters.discard_pair(put.err(), value);
        match stored {
            Some(true) => Computed::stored(result, old.into_inner()),
            Some(false) => Computed::Inserted(result),
            None => Computed::NotStored(result),
        }
    }
}

/// The change that [`Entry::try_compute`](crate::Entry::try_compute) has made to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Computed<V> {
    /// There was no value, and there is none. (Or the closure wanted one removed that had gone by
    /// then.)
    Absent,
    /// There is this value, as before.
    Kept(V),
    /// There was no value, and now there is this one. (Or there was one, which had gone before it
    /// could be replaced.)
    Inserted(V),
    /// There was another value.
    Replaced {
        /// The old value.
        old: V,
        /// The new value.
        new: V,
    },
    /// There was this value, and there is none.
    Removed(V),
    /// This value was not stored, and there is none: [`Entry::compute`](crate::Entry::compute) says
    /// when.
    NotStored(V),
}

impl<V> Computed<V> {
    /// The value that is there afterwards.
    #[must_use]
    pub fn into_value(self) -> Option<V> {
        self.into_parts().0
    }

    /// The value that was removed or replaced.
    #[must_use]
    pub fn into_old(self) -> Option<V> {
        match self {
            Self::Replaced { old, .. } | Self::Removed(old) => Some(old),
            _ => None,
        }
    }

    /// The value that is there afterwards, and the one that is not.
    fn into_parts(self) -> (Option<V>, Option<V>) {
        match self {
            Self::Absent => (None, None),
            Self::Kept(value) | Self::Inserted(value) => (Some(value), None),
            Self::Replaced { old, new } => (Some(new), Some(old)),
            Self::Removed(value) | Self::NotStored(value) => (None, Some(value)),
        }
    }

    /// The value that is there afterwards; the other one is dropped, whatever that does.
    pub(crate) fn value(self, counters: &Counters) -> Option<V> {
        let (value, other) = self.into_parts();
        counters.discard(other);
        value
    }

    /// A value that was stored.
    pub(super) fn stored(new: V, old: Option<V>) -> Self {
        match old {
            Some(old) => Self::Replaced { old, new },
            None => Self::Inserted(new),
        }
    }
}

/// Unwraps the result of a closure that cannot fail.
pub(crate) fn sure<T>(done: Result<T, Infallible>) -> T {
    let Ok(done) = done;
    done
}
