//! Loads by reference: a key is made only where there is something to load.

use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use equivalent::Equivalent;

use super::cache::Cache;

/// # Loads by reference
///
/// For loaders that say how long their value lives, there is [`fetch_by_ref`](Self::fetch_by_ref).
impl<K: Hash + Eq, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// As [`get_or_load`](Self::get_or_load), by reference. If the value is there, nothing is
    /// allocated; else the key is made from what it was asked by.
    ///
    /// ```
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let cache = tidewheel::Cache::<String, usize>::builder().max_capacity(9).no_default_ttl().build()?;
    /// let letters = cache.get_or_load_by_ref("tea", || "tea".len());
    /// assert_eq!(letters, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// As [`get_or_load`](Self::get_or_load); and if `to_owned` panics.
    #[doc(alias = "get_with_by_ref", alias = "get_or_insert_with")]
    #[inline]
    pub fn get_or_load_by_ref<Q>(&self, key: &Q, load: impl FnOnce() -> V) -> V
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        self.fetch_by_ref(key).load(load).value
    }

    /// As [`try_get_or_load`](Self::try_get_or_load), by reference: see
    /// [`get_or_load_by_ref`](Self::get_or_load_by_ref).
    ///
    /// # Errors
    ///
    /// The loader's.
    ///
    /// # Panics
    ///
    /// As [`get_or_load_by_ref`](Self::get_or_load_by_ref).
    #[doc(alias = "try_get_with_by_ref")]
    #[inline]
    pub fn try_get_or_load_by_ref<Q, E>(
        &self,
        key: &Q,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, Arc<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        E: Send + Sync + 'static,
    {
        self.fetch_by_ref(key).try_load(load).value
    }

    /// As [`optionally_get_or_load`](Self::optionally_get_or_load), by reference: see
    /// [`get_or_load_by_ref`](Self::get_or_load_by_ref).
    ///
    /// # Panics
    ///
    /// As [`get_or_load_by_ref`](Self::get_or_load_by_ref).
    #[doc(alias = "optionally_get_with_by_ref")]
    #[inline]
    pub fn optionally_get_or_load_by_ref<Q>(
        &self,
        key: &Q,
        load: impl FnOnce() -> Option<V>,
    ) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        self.fetch_by_ref(key).optionally_load(load).value
    }

    /// As [`get_or_load_async`](Self::get_or_load_async), by reference: see
    /// [`get_or_load_by_ref`](Self::get_or_load_by_ref).
    ///
    /// # Panics
    ///
    /// As [`get_or_load_async`](Self::get_or_load_async); and if `to_owned` panics.
    #[doc(alias = "get_with_by_ref", alias = "get_or_insert_async")]
    pub async fn get_or_load_by_ref_async<Q, F>(&self, key: &Q, load: F) -> V
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        F: Future<Output = V>,
    {
        self.fetch_by_ref(key).load_async(load).await.value
    }

    /// As [`try_get_or_load_async`](Self::try_get_or_load_async), by reference: see
    /// [`get_or_load_by_ref`](Self::get_or_load_by_ref).
    ///
    /// # Errors
    ///
    /// The loader's.
    ///
    /// # Panics
    ///
    /// As [`get_or_load_by_ref_async`](Self::get_or_load_by_ref_async).
    #[doc(alias = "try_get_with_by_ref")]
    pub async fn try_get_or_load_by_ref_async<Q, F, E>(&self, key: &Q, load: F) -> Result<V, Arc<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        F: Future<Output = Result<V, E>>,
        E: Send + Sync + 'static,
    {
        self.fetch_by_ref(key).try_load_async(load).await.value
    }

    /// As [`optionally_get_or_load_async`](Self::optionally_get_or_load_async), by reference: see
    /// [`get_or_load_by_ref`](Self::get_or_load_by_ref).
    ///
    /// # Panics
    ///
    /// As [`get_or_load_by_ref_async`](Self::get_or_load_by_ref_async).
    #[doc(alias = "optionally_get_with_by_ref")]
    pub async fn optionally_get_or_load_by_ref_async<Q, F>(&self, key: &Q, load: F) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        F: Future<Output = Option<V>>,
    {
        self.fetch_by_ref(key)
            .optionally_load_async(load)
            .await
            .value
    }
}
