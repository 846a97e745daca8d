//! `get_or_load` and its variants, for threads and for tasks of any runtime.

use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use super::cache::Cache;

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
