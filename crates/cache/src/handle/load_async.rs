//! `get_or_load` and its variants for tasks of any runtime.

use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use super::cache::Cache;

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
