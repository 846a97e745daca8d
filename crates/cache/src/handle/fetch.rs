//! A load that tells where its answer comes from.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use equivalent::Equivalent;
use tidewheel_time::DefaultHashBuilder;

use super::cache::Cache;
use crate::load::fetched::Fetched;
use crate::load::form::{BorrowedKey, KeyForm, OwnedKey};
use crate::load::loader_result::LoaderResult;
use crate::loaded::Loaded;

/// A key whose value is asked for; made by [`Cache::fetch`] and [`Cache::fetch_by_ref`].
///
/// Its methods load as those of the cache do. They return a [`Fetched`]: the value, and the
/// [`Outcome`](crate::Outcome) that says where it comes from.
#[must_use = "nothing is looked up or loaded until one of its methods is called"]
pub struct Fetch<'a, K, V, S = DefaultHashBuilder, Q = OwnedKey<K>> {
    cache: &'a Cache<K, V, S>,
    key: Q,
}

/// # Loads that tell where the answer comes from
impl<K: Hash + Eq, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// A key whose value is asked for by one of the methods of [`Fetch`], which tell whether it was
    /// there.
    ///
    /// ```
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let cache = tidewheel::Cache::<String, u64>::builder().max_capacity(9).no_default_ttl().build()?;
    /// let tea = cache.fetch("tea".to_string()).load(|| 7);
    /// assert_eq!((tea.value, tea.outcome), (7, tidewheel::Outcome::Loaded));
    ///
    /// let tea = cache.fetch_by_ref("tea").try_load(|| Err("timed out"));
    /// let header = format!("X-Cache: {}", tea.outcome);
    /// assert_eq!((tea.value, &*header), (Ok(7), "X-Cache: HIT"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn fetch(&self, key: K) -> Fetch<'_, K, V, S> {
        let key = OwnedKey(key);
        Fetch { cache: self, key }
    }

    /// As [`fetch`](Self::fetch), by reference. If the value is there, nothing is allocated; else
    /// the key is made from what it was asked by.
    ///
    /// ```
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let cache = tidewheel::Cache::<String, usize>::builder().max_capacity(9).no_default_ttl().build()?;
    /// let letters = cache.fetch_by_ref("tea").load(|| "tea".len()).value;
    /// assert_eq!(letters, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// A load, if `to_owned` panics.
    #[doc(alias = "get_with_by_ref", alias = "get_or_insert_with")]
    pub fn fetch_by_ref<'a, Q>(&'a self, key: &'a Q) -> Fetch<'a, K, V, S, BorrowedKey<'a, Q>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        let key = BorrowedKey(key);
        Fetch { cache: self, key }
    }
}

impl<K: Hash + Eq, V: Clone, S: BuildHasher, Q: KeyForm<K>> Fetch<'_, K, V, S, Q> {
    /// [`Cache::get_or_load`].
    ///
    /// # Panics
    ///
    /// As that.
    #[inline]
    pub fn load(self, load: impl FnOnce() -> V) -> Fetched<V> {
        self.load_with(|| Loaded::from(load()))
    }

    /// [`Cache::try_get_or_load`].
    ///
    /// # Panics
    ///
    /// As that.
    #[inline]
    pub fn try_load<E>(self, load: impl FnOnce() -> Result<V, E>) -> Fetched<Result<V, Arc<E>>, E>
    where
        E: Send + Sync + 'static,
    {
        self.load_with(|| load().map(Loaded::from))
    }

    /// [`Cache::optionally_get_or_load`].
    ///
    /// # Panics
    ///
    /// As that.
    #[inline]
    pub fn optionally_load(self, load: impl FnOnce() -> Option<V>) -> Fetched<Option<V>> {
        self.load_with(|| load().map(Loaded::from))
    }

    /// [`Cache::get_or_load`], with a loader that says how long its value lives: it returns a
    /// [`Loaded`](crate::Loaded), or that in `Option`, `Result`, or `Result<Option<_>, _>`. The
    /// answer has the same shape: see [`LoaderResult`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel::{Cache, Lifetime, Loaded};
    ///
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let cache = Cache::<String, String>::builder().max_capacity(9).no_default_ttl().build()?;
    /// let minute = Lifetime::ttl(Duration::from_secs(60));
    /// let page = cache.fetch_by_ref("/").load_with(|| Loaded::new("<p>".into(), minute.tag("home")));
    /// assert_eq!(page.value, "<p>");
    ///
    /// let failed = cache.fetch_by_ref("/b").load_with(|| Err::<Loaded<_>, _>("timed out"));
    /// assert_eq!(*failed.value.unwrap_err(), "timed out");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// As that.
    #[inline]
    pub fn load_with<R>(self, load: impl FnOnce() -> R) -> Fetched<R::Answer, R::Error>
    where
        R: LoaderResult<V>,
    {
        let load = |_| load().into_answer();
        let inner = &self.cache.inner;
        let found = inner.load(self.key, R::MAY_BE_ABSENT, false, load);
        found.map(R::answer)
    }

    /// As [`load_with`](Self::load_with), with a loader that is given the old value: one past its
    /// soft deadline, or past its end and kept by
    /// [`Builder::stale_on_error`](crate::Builder::stale_on_error) or
    /// [`Lifetime::stale_for`](crate::Lifetime::stale_for). If that is still right, the loader
    /// returns [`Loaded::unchanged`](crate::Loaded::unchanged), which has an example.
    ///
    /// Costs a clone of the old value where the loader runs.
    ///
    /// # Panics
    ///
    /// As that.
    #[doc(
        alias = "if_none_match",
        alias = "if_modified_since",
        alias = "revalidate"
    )]
    pub fn load_with_old<R>(self, load: impl FnOnce(Option<V>) -> R) -> Fetched<R::Answer, R::Error>
    where
        R: LoaderResult<V>,
    {
        let load = |old| load(old).into_answer();
        let inner = &self.cache.inner;
        let found = inner.load(self.key, R::MAY_BE_ABSENT, true, load);
        found.map(R::answer)
    }

    /// [`Cache::get_or_load_async`].
    ///
    /// # Panics
    ///
    /// As that.
    pub async fn load_async<F>(self, load: F) -> Fetched<V>
    where
        F: Future<Output = V>,
    {
        self.load_with_async(async { Loaded::from(load.await) })
            .await
    }

    /// [`Cache::try_get_or_load_async`].
    ///
    /// # Panics
    ///
    /// As that.
    pub async fn try_load_async<F, E>(self, load: F) -> Fetched<Result<V, Arc<E>>, E>
    where
        F: Future<Output = Result<V, E>>,
        E: Send + Sync + 'static,
    {
        self.load_with_async(async { load.await.map(Loaded::from) })
            .await
    }

    /// [`Cache::optionally_get_or_load_async`].
    ///
    /// # Panics
    ///
    /// As that.
    pub async fn optionally_load_async<F>(self, load: F) -> Fetched<Option<V>>
    where
        F: Future<Output = Option<V>>,
    {
        self.load_with_async(async { load.await.map(Loaded::from) })
            .await
    }

    /// As [`load_with`](Self::load_with), with a future as the loader: see
    /// [`Cache::get_or_load_async`].
    ///
    /// # Panics
    ///
    /// As [`Cache::get_or_load_async`].
    pub async fn load_with_async<F, R>(self, load: F) -> Fetched<R::Answer, R::Error>
    where
        F: Future<Output = R>,
        R: LoaderResult<V>,
    {
        let load = async { load.await.into_answer() };
        let inner = &self.cache.inner;
        let found = inner.load_async(self.key, R::MAY_BE_ABSENT, false, |_| load);
        found.await.map(R::answer)
    }

    /// As [`load_with_old`](Self::load_with_old), with a closure that returns a future. It is
    /// called only if there is something to load.
    ///
    /// # Panics
    ///
    /// As [`Cache::get_or_load_async`].
    #[doc(
        alias = "if_none_match",
        alias = "if_modified_since",
        alias = "revalidate"
    )]
    pub async fn load_with_old_async<F, R>(
        self,
        load: impl FnOnce(Option<V>) -> F,
    ) -> Fetched<R::Answer, R::Error>
    where
        F: Future<Output = R>,
        R: LoaderResult<V>,
    {
        let load = |old| {
            let loading = load(old);
            async { loading.await.into_answer() }
        };
        let inner = &self.cache.inner;
        let found = inner.load_async(self.key, R::MAY_BE_ABSENT, true, load);
        found.await.map(R::answer)
    }
}

impl<K, V, S, Q: fmt::Debug> fmt::Debug for Fetch<'_, K, V, S, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
