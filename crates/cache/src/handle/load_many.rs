//! Bulk loads: one call of a loader for all keys that are missing.

use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use equivalent::Equivalent;

use super::cache::Cache;
use crate::load::infallible;
use crate::loaded::Loaded;

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
