//! `get_or_load` and its variants for tasks of any runtime.

use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use super::cache::Cache;
use crate::lifetime::Loaded;
use crate::load::{never, value};

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// As [`get_or_load`](Self::get_or_load), with a future as the loader. The future is polled only if there is
    /// something to load. Tasks and threads share one load.
    ///
    /// The returned future may be dropped at any point. If it was the one that loads, one of the waiting callers
    /// loads with its own loader.
    ///
    /// # Panics
    ///
    /// If the loader awaits the same key, which would wait for itself; and if the loader panics.
    pub async fn get_or_load_async<F>(&self, key: K, load: F) -> V
    where
        F: Future<Output: Into<Loaded<V>>>,
    {
        let load = async { value(load.await) };
        match self.inner.load_async(key, false, load).await {
            Ok(Some(value)) => value,
            Ok(None) => unreachable!("this loader always has a value"),
            Err(error) => never(&error),
        }
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
    pub async fn try_get_or_load_async<F, T, E>(&self, key: K, load: F) -> Result<V, Arc<E>>
    where
        F: Future<Output = Result<T, E>>,
        T: Into<Loaded<V>>,
        E: Send + Sync + 'static,
    {
        let load = async { load.await.map(|loaded| Some(loaded.into())) };
        match self.inner.load_async(key, false, load).await? {
            Some(value) => Ok(value),
            None => unreachable!("this loader has a value or fails"),
        }
    }

    /// As [`optionally_get_or_load`](Self::optionally_get_or_load), with a future as the loader: see
    /// [`get_or_load_async`](Self::get_or_load_async).
    ///
    /// # Panics
    ///
    /// As [`get_or_load_async`](Self::get_or_load_async).
    pub async fn optionally_get_or_load_async<F, T>(&self, key: K, load: F) -> Option<V>
    where
        F: Future<Output = Option<T>>,
        T: Into<Loaded<V>>,
    {
        let load = async { Ok(load.await.map(Into::into)) };
        self.inner
            .load_async(key, true, load)
            .await
            .unwrap_or_else(|error| never(&error))
    }
}
