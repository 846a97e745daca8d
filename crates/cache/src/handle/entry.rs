//! Read-modify-write of one key: `entry`, `update`; atomic against every other writer of the key.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;
use tidewheel_time::DefaultHashBuilder;

use super::cache::Cache;
use crate::load::form::{BorrowedKey, KeyForm, OwnedKey};
use crate::load::latch::{Compute, Computed, PutIf, sure};
use crate::loaded::Loaded;
use crate::quiet::Quiet;

/// One key of a cache, there or not; made by [`Cache::entry`] and [`Cache::entry_by_ref`].
#[must_use = "an entry does nothing until one of its methods is called"]
pub struct Entry<'a, K, V, S = DefaultHashBuilder, Q = OwnedKey<K>> {
    pub(super) cache: &'a Cache<K, V, S>,
    pub(super) key: Q,
}

/// An [`Entry`] with what is to be done if it is there; made by [`Entry::and_update`].
#[must_use = "nothing happens until one of its methods is called"]
pub struct EntryUpdate<'a, K, V, F, S = DefaultHashBuilder, Q = OwnedKey<K>> {
    entry: Entry<'a, K, V, S, Q>,
    update: F,
}

/// # Changing a value by a closure
impl<K: Hash + Eq, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// A key, to read and change it in one step.
    ///
    /// ```
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let cache = tidewheel::Cache::<&str, u32>::builder().max_capacity(9).no_default_ttl().build()?;
    /// let hits = cache.entry("page").and_update(|hits| hits + 1).or_insert(1);
    /// assert_eq!(hits, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn entry(&self, key: K) -> Entry<'_, K, V, S> {
        let key = OwnedKey(key);
        Entry { cache: self, key }
    }

    /// As [`entry`](Self::entry), by reference: the key is made from it only for a closure that may
    /// change the entry. [`Entry::or_insert`] and its kin allocate nothing if there is a value.
    pub fn entry_by_ref<'a, Q>(&'a self, key: &'a Q) -> Entry<'a, K, V, S, BorrowedKey<'a, Q>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        let key = BorrowedKey(key);
        Entry { cache: self, key }
    }

    /// Replaces a value by what a closure makes of it, and returns the new one; `None` when the key
    /// is not there. What is left of the entry's time to live stays, and so do its tags. An [idle
    /// time](crate::Builder::time_to_idle) begins again: a write is a use.
    ///
    /// The returned value was stored. `None` too when the entry has gone while the closure ran,
    /// since its time was over, it was evicted, or its tag or all was invalidated: the new value is
    /// dropped then, and nobody hears of it. And `None` when the new value is heavier than the
    /// whole capacity: then neither it nor the old one stays, and the listener gets both.
    ///
    /// Atomic: the closure runs once, without any lock, and only those who want to change this key
    /// wait for it. A load in progress is superseded. A closure that changes other keys must do so
    /// in an order that all closures share, as with locks.
    ///
    /// # Panics
    ///
    /// If the closure changes or loads the same key, which would wait for itself; and if it panics,
    /// which changes nothing.
    #[doc(alias = "computeIfPresent")]
    pub fn update<Q>(&self, key: &Q, update: impl FnOnce(&V) -> V) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        K: Clone,
    {
        self.change_present(key, |old| Compute::Update(update(old)))
    }

    /// As [`update`](Self::update), with the lifetime that the closure returns, counted from now.
    /// Its tags are those of that lifetime: the old ones go.
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
        computed.value(&inner.counters)
    }
}

impl<'a, K: Hash + Eq, V: Clone, S: BuildHasher, Q: KeyForm<K>> Entry<'a, K, V, S, Q> {
    /// The value; if there is none, this one, which is stored. (It is returned all the same if it
    /// is heavier than the whole capacity, or the cache is closed.)
    #[doc(alias = "or_default", alias = "into_value")]
    pub fn or_insert(self, value: V) -> V {
        self.or_insert_with(|| value)
    }

    /// Returns the value. If there is none, stores and returns the closure's. Other writers of the
    /// key wait for the closure. For a slow closure [`Cache::get_or_load`] is better: there a
    /// writer does not wait, but supersedes the load.
    ///
    /// # Panics
    ///
    /// As [`Cache::update`].
    pub fn or_insert_with(self, value: impl FnOnce() -> V) -> V {
        self.or_insert_loaded(|| value().into())
    }

    /// As [`or_insert_with`](Self::or_insert_with), with a closure that says how long its value
    /// lives.
    ///
    /// # Panics
    ///
    /// As [`Cache::update`].
    pub fn or_insert_loaded(self, value: impl FnOnce() -> Loaded<V>) -> V {
        let counters = &self.cache.inner.counters;
        let value = Quiet::new(value, counters);
        let key = Quiet::new(self.key, counters);
        if let Some(found) = self.cache.get(key.sought()) {
            return found;
        }
        let key = key.into_inner();
        let cache = self.cache;
        Entry { cache, key }.put(|old| match old {
            Some(_) => Compute::Keep,
            None => Compute::Put(value.into_inner()()),
        })
    }

    /// Adds what is to be done if there is a value: see [`Cache::update`]. One step with what
    /// follows.
    pub fn and_update<F>(self, update: F) -> EntryUpdate<'a, K, V, F, S, Q>
    where
        F: FnOnce(&V) -> V,
    {
        EntryUpdate {
            entry: self,
            update,
        }
    }

    /// A closure sees the value and decides what is done. Returns the value that is there
    /// afterwards; [`try_compute`](Self::try_compute) also tells what was there before.
    ///
    /// A new value that was not stored is dropped and not returned, as by [`Cache::update`]:
    ///
    /// - An `Update` is not stored if the old entry has left meanwhile, for any reason.
    /// - A `Put` in place of an old value is not stored if everything, or a tag of the old entry,
    ///   was invalidated meanwhile.
    /// - A `Put` where there was no value is stored whatever was invalidated meanwhile.
    ///
    /// A stored value is returned even if it was evicted at once. That happens when all other
    /// entries of a full cache are [pinned](Cache::pin).
    ///
    /// # Panics
    ///
    /// As [`Cache::update`].
    #[doc(
        alias = "and_compute_with",
        alias = "and_upsert_with",
        alias = "get_with_if",
        alias = "or_insert_with_if",
        alias = "or_optionally_insert_with",
        alias = "or_try_insert_with"
    )]
    pub fn compute(self, change: impl FnOnce(Option<&V>) -> Compute<V>) -> Option<V> {
        let inner = &self.cache.inner;
        let computed = inner.compute(self.key.into_key(), PutIf::NotInvalidated, change);
        computed.value(&inner.counters)
    }

    /// An async closure sees a copy of the value and decides what is done. Returns the value that
    /// is there afterwards.
    ///
    /// ```
    /// use tidewheel::{Cache, Compute};
    ///
    /// # async fn add() -> Result<(), tidewheel::BuildError> {
    /// let cache = Cache::<String, u64>::builder().max_capacity(9).no_default_ttl().build()?;
    /// let visits = cache.entry_by_ref("home").compute_async(async |visits| match visits {
    ///     Some(visits) => Compute::Update(visits + 1),
    ///     None => Compute::Put(read_from_the_database().await.into()),
    /// });
    /// assert!(visits.await.is_some());
    /// # Ok(())
    /// # }
    ///
    /// async fn read_from_the_database() -> u64 { 7 }
    /// ```
    ///
    /// Such closures of one key take turns, in the order in which they came. Readers see the old
    /// value meanwhile; who loads the key waits if there is none. Nothing is locked, so **no other
    /// writer waits** for the closure, as it would for [`compute`](Self::compute): `insert`,
    /// `remove`, [`Cache::update`] and the others go first. Then what the closure has said is
    /// dropped, and it runs again with the value that is there now; so it does if the entry that it
    /// has seen has expired, or was evicted or invalidated. Nothing limits how often: a closure
    /// that takes longer than the pauses between the other writes may never get through. The caller
    /// can drop the future, for example by a time-out. After `Keep` nothing runs again.
    ///
    /// The returned future may be dropped at any point: nothing has changed then, and the next
    /// closure has its turn. One that is neither polled nor dropped keeps the others waiting, as
    /// with async locks. A new value that is heavier than the whole capacity is dropped, and the
    /// old one goes: `None`.
    ///
    /// # Panics
    ///
    /// If the closure loads or changes the same key, which would wait for itself or run it again
    /// for ever; and if it panics, which changes nothing. (It should not invalidate its own key by
    /// a tag or with all others: no panic tells that it then runs for ever.)
    #[doc(alias = "and_compute_with", alias = "and_upsert_with")]
    pub async fn compute_async<F, R>(self, mut change: F) -> Option<V>
    where
        K: Clone,
        F: FnMut(Option<V>) -> R,
        R: Future<Output = Compute<V>>,
    {
        let inner = &self.cache.inner;
        let change = |old| {
            let wanted = change(old);
            async { Ok(wanted.await) }
        };
        let computed = inner.compute_async(self.key.into_key(), false, change);
        sure(computed.await).value(&inner.counters)
    }

    /// As [`compute`](Self::compute), with a closure that may fail, and with an answer that tells
    /// what was there before: the value that was removed or replaced. After an error nothing has
    /// changed.
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use tidewheel::{Compute, Computed};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let cache = tidewheel::Cache::<String, u32>::builder().max_capacity(9).no_default_ttl().build()?;
    /// cache.insert("stock".into(), 1);
    /// let take = |stock: Option<&u32>| match stock {
    ///     None => Err("sold out"),
    ///     Some(1) => Ok(Compute::Remove),
    ///     Some(stock) => Ok(Compute::Update(stock - 1)),
    /// };
    /// assert_eq!(cache.entry_by_ref("stock").try_compute(take), Ok(Computed::Removed(1)));
    /// assert_eq!(cache.entry_by_ref("stock").try_compute(take), Err("sold out"));
    ///
    /// // One that cannot fail:
    /// let fill = |_: Option<&u32>| Ok::<_, Infallible>(Compute::Put(9.into()));
    /// assert_eq!(cache.entry_by_ref("stock").try_compute(fill)?, Computed::Inserted(9));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The value that was removed or replaced is a copy: the listener gets the value itself.
    ///
    /// # Errors
    ///
    /// The closure's.
    ///
    /// # Panics
    ///
    /// As [`Cache::update`](crate::Cache::update).
    #[doc(
        alias = "and_try_compute_with",
        alias = "and_compute_with",
        alias = "CompResult"
    )]
    pub fn try_compute<E>(
        self,
        change: impl FnOnce(Option<&V>) -> Result<Compute<V>, E>,
    ) -> Result<Computed<V>, E> {
        let inner = &self.cache.inner;
        inner.try_compute(self.key.into_key(), PutIf::NotInvalidated, change)
    }

    /// As [`try_compute`](Self::try_compute), with an async closure: see
    /// [`compute_async`](Self::compute_async). Costs one more clone of the old value, each time
    /// that the closure runs. An error ends it, also if the key was written meanwhile.
    ///
    /// # Errors
    ///
    /// The closure's.
    ///
    /// # Panics
    ///
    /// As [`compute_async`](Self::compute_async).
    #[doc(
        alias = "and_try_compute_with",
        alias = "and_compute_with",
        alias = "CompResult"
    )]
    pub async fn try_compute_async<F, R, E>(self, change: F) -> Result<Computed<V>, E>
    where
        K: Clone,
        F: FnMut(Option<V>) -> R,
        R: Future<Output = Result<Compute<V>, E>>,
    {
        let inner = &self.cache.inner;
        inner.compute_async(self.key.into_key(), true, change).await
    }

    /// As [`compute`](Self::compute), with a closure after which there always is a value, stored or
    /// not.
    fn put(self, change: impl FnOnce(Option<&V>) -> Compute<V>) -> V {
        let inner = &self.cache.inner;
        match inner.compute(self.key.into_key(), PutIf::NotInvalidated, change) {
            Computed::NotStored(value) => value,
            computed => computed
                .value(&inner.counters)
                .expect("the closure keeps what is there, or puts something"),
        }
    }
}

impl<K: Hash + Eq, V: Clone, F, S: BuildHasher, Q: KeyForm<K>> EntryUpdate<'_, K, V, F, S, Q>
where
    F: FnOnce(&V) -> V,
{
    /// Updates the value, or stores this one; returns the new one, even if it was not stored since
    /// the entry has gone meanwhile, or it is too heavy.
    ///
    /// # Panics
    ///
    /// As [`Cache::update`].
    pub fn or_insert(self, value: V) -> V {
        self.or_insert_with(|| value)
    }

    /// As [`or_insert`](Self::or_insert), with a closure's value.
    ///
    /// # Panics
    ///
    /// As [`Cache::update`].
    pub fn or_insert_with(self, value: impl FnOnce() -> V) -> V {
        self.or_insert_loaded(|| value().into())
    }

    /// As [`or_insert_with`](Self::or_insert_with), with a closure that says how long its value
    /// lives.
    ///
    /// # Panics
    ///
    /// As [`Cache::update`].
    pub fn or_insert_loaded(self, value: impl FnOnce() -> Loaded<V>) -> V {
        let Self { entry, update } = self;
        let counters = &entry.cache.inner.counters;
        let (update, value) = (Quiet::new(update, counters), Quiet::new(value, counters));
        entry.put(|old| match old {
            Some(old) => Compute::Update(update.into_inner()(old)),
            None => Compute::Put(value.into_inner()()),
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

impl<K, V, S, Q: fmt::Debug> fmt::Debug for Entry<'_, K, V, S, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl<K, V, F, S, Q: fmt::Debug> fmt::Debug for EntryUpdate<'_, K, V, F, S, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryUpdate")
            .field("entry", &self.entry)
            .finish_non_exhaustive()
    }
}
