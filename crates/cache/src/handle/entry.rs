//! Read-modify-write of one key: `entry`, `update`; atomic against every other writer of the key.
//!
//! A latch in the table of flights keeps the key's other writers waiting, each on its thread, while the closure
//! runs: once, without any shard's lock, on a clone of the old value. Readers see the old value meanwhile, and
//! other keys are not concerned. If the closure panics, the latch opens and nothing has changed. Expiry,
//! eviction and invalidation by tag or of all do not wait: an update of an entry that goes while the closure
//! runs is none, and the answer says so. The answer is what was stored, and nothing else.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use equivalent::Equivalent;

use super::cache::Cache;
use crate::core::flight::{Flight, Phase};
use crate::core::hash::Hashed;
use crate::core::inner::Inner;
use crate::core::insert::{Prepared, own};
use crate::core::removal::RemovalCause;
use crate::core::shard::Shard;
use crate::lifetime::Loaded;
use crate::quiet::Quiet;

/// What a closure of [`Entry::compute`] wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compute<V> {
    /// Nothing.
    Keep,
    /// Store a value, with its lifetime (the configured one if it has none of its own).
    Put(Loaded<V>),
    /// Store a value that lives as long as the old one would have, with its tags. Without an old one, as
    /// `Put`.
    Update(V),
    /// Remove the entry.
    Remove,
}

/// One key of a cache, there or not; made by [`Cache::entry`].
#[must_use = "an entry does nothing until one of its methods is called"]
pub struct Entry<'a, K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    cache: &'a Cache<K, V, S>,
    key: K,
}

/// An [`Entry`] with what is to be done if it is there; made by [`Entry::and_update`].
#[must_use = "nothing happens until one of its methods is called"]
pub struct EntryUpdate<'a, K, V, S, F>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    entry: Entry<'a, K, V, S>,
    update: F,
}

impl<K, V, S> Cache<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// A key, to read and change it in one step.
    ///
    /// ```
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// # let cache = tidewheel::Cache::builder().max_capacity(9).no_default_ttl().build()?;
    /// let hits = cache.entry("page").and_update(|hits| hits + 1).or_insert(1);
    /// assert_eq!(hits, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn entry(&self, key: K) -> Entry<'_, K, V, S> {
        Entry { cache: self, key }
    }

    /// Replaces a value by what a closure makes of it, and returns the new one; `None` when the key is
    /// not there. What is left of the entry's time to live stays, and so do its tags.
    ///
    /// What is returned was stored. `None` too when the entry has gone while the closure ran, since its time
    /// was over, it was evicted, or its tag or all was invalidated: the new value is dropped then, and nobody
    /// hears of it. And `None` when the new value is heavier than the whole capacity: then neither it nor the
    /// old one stays, and the listener gets both.
    ///
    /// Atomic: the closure runs once, without any lock, and only those who want to change this key wait
    /// for it. A load in progress is superseded. A closure that changes other keys must do so in an order
    /// that all closures share, as with locks.
    ///
    /// # Panics
    ///
    /// If the closure changes or loads the same key, which would wait for itself; and if it panics, which
    /// changes nothing.
    pub fn update<Q>(&self, key: &Q, update: impl FnOnce(&V) -> V) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        K: Clone,
    {
        self.change_present(key, |old| Compute::Update(update(old)))
    }

    /// As [`update`](Self::update), with the lifetime that the closure returns, counted from now.
    ///
    /// # Panics
    ///
    /// As [`update`](Self::update).
    pub fn update_with<Q>(&self, key: &Q, update: impl FnOnce(&V) -> Loaded<V>) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        K: Clone,
    {
        self.change_present(key, |old| Compute::Put(update(old)))
    }

    fn change_present<Q>(&self, key: &Q, change: impl FnOnce(&V) -> Compute<V>) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        K: Clone,
    {
        let inner = &self.inner;
        let change = Quiet::new(change, &inner.counters);
        let key = self.look(key, |shard, slot| shard.store.key(slot).clone())?;
        let computed = inner.compute(key, PutIf::StillThere, |old| match old {
            Some(old) => change.into_inner()(old),
            None => Compute::Keep,
        });
        inner.what_is_there(computed)
    }
}

impl<'a, K, V, S> Entry<'a, K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// The value; if there is none, this one, which is stored. (It is returned all the same if it is heavier
    /// than the whole capacity, or the cache is closed.)
    pub fn or_insert(self, value: impl Into<Loaded<V>>) -> V {
        self.or_insert_with(|| value)
    }

    /// The value; if there is none, the closure's, which is stored. Those who insert meanwhile wait: for
    /// slow closures, [`Cache::get_or_load`] serves better, where they supersede.
    ///
    /// # Panics
    ///
    /// As [`Cache::update`].
    pub fn or_insert_with<T>(self, value: impl FnOnce() -> T) -> V
    where
        T: Into<Loaded<V>>,
    {
        let counters = &self.cache.inner.counters;
        let value = Quiet::new(value, counters);
        if let Some(found) = self.cache.get(&self.key) {
            counters.discard(self.key);
            return found;
        }
        self.put(|old| match old {
            Some(_) => Compute::Keep,
            None => Compute::Put(value.into_inner()().into()),
        })
    }

    /// Adds what is to be done if there is a value: see [`Cache::update`]. One step with what follows.
    pub fn and_update<F>(self, update: F) -> EntryUpdate<'a, K, V, S, F>
    where
        F: FnOnce(&V) -> V,
    {
        EntryUpdate {
            entry: self,
            update,
        }
    }

    /// Lets a closure decide by the value what is done; returns the value that is then there. A new value
    /// that was not stored is dropped and not returned, as by [`Cache::update`]: a `Put` in place of an old
    /// value when all or the old entry's tag was invalidated meanwhile, an `Update` when the old entry has gone
    /// for any reason. A `Put` where there was no value is stored whatever was invalidated meanwhile.
    ///
    /// A value that was stored is returned even if it has left at once, as the only one that is not
    /// [pinned](Cache::pin) in a full cache.
    ///
    /// # Panics
    ///
    /// As [`Cache::update`].
    pub fn compute(self, change: impl FnOnce(Option<&V>) -> Compute<V>) -> Option<V> {
        let inner = &self.cache.inner;
        inner.what_is_there(inner.compute(self.key, PutIf::NotInvalidated, change))
    }

    /// As [`compute`](Self::compute), with a closure after which there always is a value, stored or not.
    fn put(self, change: impl FnOnce(Option<&V>) -> Compute<V>) -> V {
        let inner = &self.cache.inner;
        match inner.compute(self.key, PutIf::NotInvalidated, change) {
            Ok(Some(value)) | Err(value) => value,
            Ok(None) => unreachable!("the closure keeps what is there, or puts something"),
        }
    }
}

impl<K, V, S, F> EntryUpdate<'_, K, V, S, F>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
    F: FnOnce(&V) -> V,
{
    /// Updates the value, or stores this one; returns the new one, even if it was not stored since the entry
    /// has gone meanwhile, or it is too heavy.
    ///
    /// # Panics
    ///
    /// As [`Cache::update`].
    pub fn or_insert(self, value: impl Into<Loaded<V>>) -> V {
        self.or_insert_with(|| value)
    }

    /// As [`or_insert`](Self::or_insert), with a closure's value.
    ///
    /// # Panics
    ///
    /// As [`Cache::update`].
    pub fn or_insert_with<T>(self, value: impl FnOnce() -> T) -> V
    where
        T: Into<Loaded<V>>,
    {
        let Self { entry, update } = self;
        let counters = &entry.cache.inner.counters;
        let (update, value) = (Quiet::new(update, counters), Quiet::new(value, counters));
        entry.put(|old| match old {
            Some(old) => Compute::Update(update.into_inner()(old)),
            None => Compute::Put(value.into_inner()().into()),
        })
    }

    /// Updates the value if there is one, and returns the new one, as [`Cache::update`] does.
    ///
    /// # Panics
    ///
    /// As [`Cache::update`].
    pub fn or_nothing(self) -> Option<V> {
        let Self { entry, update } = self;
        let update = Quiet::new(update, &entry.cache.inner.counters);
        entry.compute(|old| match old {
            Some(old) => Compute::Update(update.into_inner()(old)),
            None => Compute::Keep,
        })
    }
}

/// When the value of [`Compute::Put`] is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PutIf {
    /// Unless the old value was invalidated meanwhile: that came after this change.
    NotInvalidated,
    /// Only if the old value has not gone meanwhile for any reason.
    StillThere,
}

/// The value that is there after a closure; `Err` with a copy of the closure's if that was not stored.
type Computed<V> = Result<Option<V>, V>;

/// An open door behind a closure, however it ends.
struct Latched<'a, K: Hash + Eq, V, S: BuildHasher> {
    inner: &'a Inner<K, V, S>,
    hash: Hashed,
    flight: Arc<Flight<V>>,
    open: bool,
}

impl<K: Hash + Eq, V, S: BuildHasher> Latched<'_, K, V, S> {
    /// Makes the last change under the shard's lock and opens the latch. `change` is told whether the shard
    /// was emptied meanwhile.
    fn open<R>(mut self, change: impl FnOnce(&mut Shard<K, V>, bool) -> R) -> R {
        let inner = self.inner;
        let result = inner.write(inner.cell(self.hash), |shard| {
            let ended = shard.flights.remove(self.hash.0, &self.flight);
            let cleared = ended.as_ref().is_some_and(|ended| ended.cleared);
            // The caller has the key too: this does not drop it.
            drop(ended);
            change(shard, cleared)
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
    fn compute(
        &self,
        key: K,
        put_if: PutIf,
        change: impl FnOnce(Option<&V>) -> Compute<V>,
    ) -> Computed<V> {
        self.lead(|| self.compute_latched(key, put_if, change))
    }

    fn what_is_there(&self, computed: Computed<V>) -> Option<V> {
        computed.unwrap_or_else(|unstored| {
            self.counters.discard(unstored);
            None
        })
    }

    fn compute_latched(
        &self,
        key: K,
        put_if: PutIf,
        change: impl FnOnce(Option<&V>) -> Compute<V>,
    ) -> Computed<V> {
        let hash = self.hash(&key);
        let key = Quiet::new(Arc::new(key), &self.counters);
        let latched = self.latch(hash, &key);
        let old = {
            let shard = self.read(self.cell(hash));
            Self::find(&shard, hash, &**key)
                .filter(|slot| self.is_live(&shard.store, *slot))
                .map(|slot| shard.store.value(slot).clone())
        };
        let old = Quiet::new(old, &self.counters);
        match (change(old.as_ref()), old) {
            (Compute::Keep, old) => Ok(old.into_inner()),
            (Compute::Remove, _) => {
                self.compute_removal(latched, hash, &key);
                Ok(None)
            }
            (Compute::Put(loaded), old) => {
                let put_if = old.as_ref().map(|_| put_if);
                self.compute_value(latched, hash, key.into_inner(), loaded, put_if)
            }
            (Compute::Update(value), old) if old.is_some() => {
                self.compute_update(latched, hash, key.into_inner(), value)
            }
            (Compute::Update(value), _) => {
                self.compute_value(latched, hash, key.into_inner(), value.into(), None)
            }
        }
    }

    fn latch(&self, hash: Hashed, key: &Arc<K>) -> Latched<'_, K, V, S> {
        loop {
            let latch = self.hold(self.cell(hash), |shard| {
                let Shard {
                    flights, garbage, ..
                } = shard;
                match flights.writing(hash.0, |stored| *stored == **key, &mut garbage.keys) {
                    Some(other) => Err(other),
                    None => Ok(flights.latch(hash.0, Arc::clone(key))),
                }
            });
            match latch {
                Ok(flight) => {
                    return Latched {
                        inner: self,
                        hash,
                        flight,
                        open: false,
                    };
                }
                Err(other) => other.wait_open(),
            }
        }
    }

    fn compute_removal(&self, latched: Latched<'_, K, V, S>, hash: Hashed, key: &K) {
        let now = self.time.now().tick();
        latched.open(|shard, _| {
            shard.forget_negative(hash, |stored| stored == key);
            if let Some((old, dead_by)) = self.take(shard, hash, key) {
                let cause = dead_by.unwrap_or(RemovalCause::Removed);
                self.file_removal(shard, old, cause, now);
            }
        });
    }

    /// `put_if` is for where there was an old value.
    fn compute_value(
        &self,
        latched: Latched<'_, K, V, S>,
        hash: Hashed,
        key: Arc<K>,
        loaded: Loaded<V>,
        put_if: Option<PutIf>,
    ) -> Computed<V> {
        let Loaded { value, lifetime } = loaded;
        let result = value.clone();
        let prepared = self.prepare(hash, &key, &value, &lifetime);
        let mut value = Some(value);
        let put = latched.open(|shard, cleared| {
            let slot = Self::find(shard, hash, &*key);
            let is_current = |slot| self.tags.is_current(shard.store.tag_of(slot));
            let puts = match put_if {
                None => true,
                Some(PutIf::NotInvalidated) => !cleared && slot.is_none_or(is_current),
                Some(PutIf::StillThere) => {
                    slot.is_some_and(|slot| self.is_live(&shard.store, slot))
                }
            };
            if !puts {
                return Err(key);
            }
            shard.forget_negative(hash, |stored| *stored == *key);
            let (key, new) = own(key, &mut value)?;
            Ok(self.put(shard, hash, key, new, &prepared))
        });
        self.computed(put, value, result)
    }

    fn compute_update(
        &self,
        latched: Latched<'_, K, V, S>,
        hash: Hashed,
        key: Arc<K>,
        value: V,
    ) -> Computed<V> {
        let result = value.clone();
        let weight = self.config.weight(&key, &value);
        let fits = self.fits(hash, &key, weight);
        let now = self.time.now();
        let mut value = Some(value);
        let put = latched.open(|shard, _| {
            let Some(slot) =
                Self::find(shard, hash, &*key).filter(|slot| self.is_live(&shard.store, *slot))
            else {
                return Err(key);
            };
            let attributes = tidewheel_store::Attributes {
                weight,
                ..shard.store.attributes(slot)
            };
            let prepared = Prepared {
                attributes,
                tags: self.tags.hold_again(attributes.tag),
                now,
                fits,
            };
            shard.forget_negative(hash, |stored| *stored == *key);
            let (key, new) = own(key, &mut value)?;
            Ok(self.put(shard, hash, key, new, &prepared))
        });
        self.computed(put, value, result)
    }

    /// What has become of a closure's value: `put` says, and `unused` is left of it.
    fn computed(&self, put: Result<bool, Arc<K>>, unused: Option<V>, result: V) -> Computed<V> {
        let stored = matches!(put, Ok(true));
        self.counters.discard_pair(put.err(), unused);
        if stored {
            Ok(Some(result))
        } else {
            Err(result)
        }
    }
}

impl<K, V, S> fmt::Debug for Entry<'_, K, V, S>
where
    K: Hash + Eq + fmt::Debug + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl<K, V, S, F> fmt::Debug for EntryUpdate<'_, K, V, S, F>
where
    K: Hash + Eq + fmt::Debug + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryUpdate")
            .field("entry", &self.entry)
            .finish_non_exhaustive()
    }
}
