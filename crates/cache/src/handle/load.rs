//! Loads of one key, and bulk loads: one call of a loader for all keys that are missing.

use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use equivalent::Equivalent;

use crate::handle::cache::Cache;
use crate::load::infallible;
use crate::loaded::Loaded;

/// # Loading, on threads
impl<K: Hash + Eq, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// The value of a key; if there is none, that of the loader, which is stored.
    ///
    /// However many threads and tasks ask for a key at the same time, one loader runs; the others
    /// wait and get a clone of its value. If it panics, one of those who wait runs its own loader,
    /// and the others go on waiting. The loader runs on this thread without any lock and may use
    /// the cache, other keys' loads included; but two loaders that ask for each other's keys wait
    /// for ever, as with locks.
    ///
    /// A caller that inserts, updates, removes or invalidates the key during the load supersedes
    /// it: the loaded value goes to those who were waiting, it is not stored, and who asks from
    /// then on does not get it.
    ///
    /// Past an entry's soft deadline ([`Builder::refresh_after`](crate::Builder::refresh_after),
    /// [`Lifetime::fresh_for`](crate::Lifetime::fresh_for)) one caller runs its loader, and the
    /// others get the old value meanwhile; with a refresher
    /// ([`Builder::refresh_with`](crate::Builder::refresh_with)) all get the old value.
    ///
    /// The value has the configured lifetime. A loader that says how long its value lives, or gives
    /// it tags, is for [`Fetch::load_with`](crate::Fetch::load_with); a key by reference, for
    /// [`fetch_by_ref`](Self::fetch_by_ref).
    ///
    /// # Panics
    ///
    /// If the loader asks for the same key, which would wait for itself; if an asynchronous load of
    /// the key is unfinished that this very thread polled last, for to wait here may keep it from
    /// ever being polled again: tasks use [`get_or_load_async`](Self::get_or_load_async); and if
    /// the loader panics.
    #[doc(
        alias = "get_with",
        alias = "computeIfAbsent",
        alias = "get_or_insert_with"
    )]
    pub fn get_or_load(&self, key: K, load: impl FnOnce() -> V) -> V {
        self.fetch(key).load(load).value
    }

    /// As [`get_or_load`](Self::get_or_load), with a loader that may fail.
    ///
    /// Those who wait share the error if theirs is of the same type; others run their own loader.
    /// With [`Builder::negative_ttl`](crate::Builder::negative_ttl) the error is remembered for
    /// that long and answered without a call of a loader. An insertion or removal of the key
    /// forgets it, and so do [`invalidate_all`](Self::invalidate_all) and the removal of its old
    /// value by [`invalidate_if`](Self::invalidate_if). Expiry, eviction and
    /// [`invalidate_tag`](Self::invalidate_tag) do not.
    ///
    /// While there is an old value, it is answered in place of the error: past its soft deadline,
    /// and after its end for as long as [`Builder::stale_on_error`](crate::Builder::stale_on_error)
    /// allows.
    ///
    /// # Errors
    ///
    /// The loader's.
    ///
    /// # Panics
    ///
    /// As [`get_or_load`](Self::get_or_load).
    #[doc(alias = "try_get_with", alias = "get_value_or_guard")]
    pub fn try_get_or_load<E>(
        &self,
        key: K,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, Arc<E>>
    where
        E: Send + Sync + 'static,
    {
        self.fetch(key).try_load(load).value
    }

    /// As [`get_or_load`](Self::get_or_load), with a loader that may find that there is no such
    /// thing.
    ///
    /// An absence is shared with those who wait, and remembered for
    /// [`Builder::negative_ttl`](crate::Builder::negative_ttl). An old value past its soft deadline
    /// goes.
    ///
    /// # Panics
    ///
    /// As [`get_or_load`](Self::get_or_load).
    #[doc(alias = "optionally_get_with")]
    pub fn optionally_get_or_load(&self, key: K, load: impl FnOnce() -> Option<V>) -> Option<V> {
        self.fetch(key).optionally_load(load).value
    }
}

/// # Loading, in tasks
impl<K: Hash + Eq, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// As [`get_or_load`](Self::get_or_load), with a future as the loader: an `async` block, or
    /// what a function returns that is `async`. The future is polled only if there is something to
    /// load. Tasks and threads share one load.
    ///
    /// The returned future may be dropped at any point. If it was the one that loads, one of the
    /// waiting callers loads with its own loader. One that is neither polled nor dropped, such as
    /// one that is leaked, keeps those waiting who have come for the key; after the next write of
    /// the key nobody else comes to wait for it.
    ///
    /// # Panics
    ///
    /// If the loader awaits the same key, which would wait for itself; and if the loader panics.
    #[doc(
        alias = "get_with",
        alias = "get_or_insert_async",
        alias = "AsyncCache"
    )]
    pub async fn get_or_load_async<F>(&self, key: K, load: F) -> V
    where
        F: Future<Output = V>,
    {
        self.fetch(key).load_async(load).await.value
    }

    /// As [`try_get_or_load`](Self::try_get_or_load), with a future as the loader: see
    /// [`get_or_load_async`](Self::get_or_load_async).
    ///
    /// # Errors
    ///
    /// The loader's.
    ///
    /// # Panics
    ///
    /// As [`get_or_load_async`](Self::get_or_load_async).
    #[doc(alias = "try_get_with", alias = "get_value_or_guard_async")]
    pub async fn try_get_or_load_async<F, E>(&self, key: K, load: F) -> Result<V, Arc<E>>
    where
        F: Future<Output = Result<V, E>>,
        E: Send + Sync + 'static,
    {
        self.fetch(key).try_load_async(load).await.value
    }

    /// As [`optionally_get_or_load`](Self::optionally_get_or_load), with a future as the loader:
    /// see [`get_or_load_async`](Self::get_or_load_async).
    ///
    /// # Panics
    ///
    /// As [`get_or_load_async`](Self::get_or_load_async).
    #[doc(alias = "optionally_get_with")]
    pub async fn optionally_get_or_load_async<F>(&self, key: K, load: F) -> Option<V>
    where
        F: Future<Output = Option<V>>,
    {
        self.fetch(key).optionally_load_async(load).await.value
    }
}

/// # Loading many keys at once
impl<K: Hash + Eq, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// The values of many keys, in their order. One call of the loader, which gets the missing keys
    /// and returns them with their values, in any order.
    ///
    /// ```
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let cache = tidewheel::Cache::<String, usize>::builder().max_capacity(9).no_default_ttl().build()?;
    /// cache.insert("tea".to_string(), 3);
    /// let lengths = cache.get_or_load_many(["tea", "milk"], |missing| {
    ///     assert_eq!(missing, ["milk"]);
    ///     missing.into_iter().map(|key| (key.clone(), key.len()))
    /// });
    /// assert_eq!(lengths, [Some(3), Some(4)]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// - A key that the loader leaves out is absent: `None`, and remembered as
    ///   [`optionally_get_or_load`](Self::optionally_get_or_load) does. What it returns beside the
    ///   keys that it was given is dropped, since a writer may have stored something newer; of two
    ///   values for a key the first one counts.
    /// - A key that is asked for twice is loaded once, and answered twice.
    /// - A key that another caller is loading is not loaded again: this call waits for that, once
    ///   its own keys are loaded. So two calls with the same keys do not wait for each other. Each
    ///   key is shared with the callers of the other loads. If the other load fails, the loader is
    ///   called once more for what it has left.
    /// - A value may be a [`Loaded`] with a lifetime of its own.
    ///
    /// Costs a look-up for each key. A hit makes no key. [`Stats::loads`](crate::Stats::loads)
    /// counts each key that is loaded.
    ///
    /// # Panics
    ///
    /// As [`get_or_load`](Self::get_or_load). If the loader panics, other callers load its keys;
    /// what its iterator has returned by then is stored.
    #[doc(alias = "getAll")]
    pub fn get_or_load_many<'q, Q, I, T>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        mut load: impl FnMut(Vec<K>) -> I,
    ) -> Vec<Option<V>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        I: IntoIterator<Item = (K, T)>,
        T: Into<Loaded<V>>,
    {
        let answers = self.inner.load_many(keys, |missing| Ok(load(missing)));
        answers.into_iter().map(infallible).collect()
    }

    /// As [`get_or_load_many`](Self::get_or_load_many), with a loader that may fail. Each missing
    /// key has its error, in place of which an old value may be served as by
    /// [`try_get_or_load`](Self::try_get_or_load). What was there is answered all the same:
    ///
    /// ```
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let cache = tidewheel::Cache::<String, usize>::builder().max_capacity(9).no_default_ttl().build()?;
    /// cache.insert("tea".to_string(), 3);
    /// let load = |_| Err::<Vec<(_, usize)>, _>("timed out");
    /// let lengths = cache.try_get_or_load_many(["tea", "milk"], load);
    /// assert_eq!(lengths[0], Ok(Some(3)));
    ///
    /// // All or nothing:
    /// let all: Result<Vec<_>, _> = lengths.into_iter().collect();
    /// assert_eq!(*all.unwrap_err(), "timed out");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// As [`get_or_load_many`](Self::get_or_load_many).
    pub fn try_get_or_load_many<'q, Q, I, T, E>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        load: impl FnMut(Vec<K>) -> Result<I, E>,
    ) -> Vec<Result<Option<V>, Arc<E>>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        I: IntoIterator<Item = (K, T)>,
        T: Into<Loaded<V>>,
        E: Send + Sync + 'static,
    {
        self.inner.load_many(keys, load)
    }

    /// As [`get_or_load_many`](Self::get_or_load_many), with a closure that returns a future. The
    /// returned future may be dropped at any point: then other callers load its keys.
    ///
    /// # Panics
    ///
    /// As [`get_or_load_async`](Self::get_or_load_async).
    pub async fn get_or_load_many_async<'q, Q, I, T, F>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        mut load: impl FnMut(Vec<K>) -> F,
    ) -> Vec<Option<V>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        I: IntoIterator<Item = (K, T)>,
        T: Into<Loaded<V>>,
        F: Future<Output = I>,
    {
        let load = |missing| {
            let loaded = load(missing);
            async { Ok(loaded.await) }
        };
        let answers = self.inner.load_many_async(keys, load).await;
        answers.into_iter().map(infallible).collect()
    }

    /// As [`try_get_or_load_many`](Self::try_get_or_load_many), with a closure that returns a
    /// future: see [`get_or_load_many_async`](Self::get_or_load_many_async).
    ///
    /// # Panics
    ///
    /// As [`get_or_load_async`](Self::get_or_load_async).
    pub async fn try_get_or_load_many_async<'q, Q, I, T, E, F>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        load: impl FnMut(Vec<K>) -> F,
    ) -> Vec<Result<Option<V>, Arc<E>>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        I: IntoIterator<Item = (K, T)>,
        T: Into<Loaded<V>>,
        E: Send + Sync + 'static,
        F: Future<Output = Result<I, E>>,
    {
        self.inner.load_many_async(keys, load).await
    }
}
