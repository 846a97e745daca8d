//! Changes of one key by a closure that may fail, and that tell what was there before.

use std::future::Future;
use std::hash::{BuildHasher, Hash};

use super::entry::Entry;
use crate::load::computed::Computed;
use crate::load::form::KeyForm;
use crate::load::latch::{Compute, PutIf};

impl<K: Hash + Eq, V: Clone, S: BuildHasher, Q: KeyForm<K>> Entry<'_, K, V, S, Q> {
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
}
