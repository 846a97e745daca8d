//! Tasks load through these calls.

use std::convert::Infallible;
use std::hash::Hash;
use std::sync::Arc;

use super::cache::TieredCache;
use super::held::Belief;
use super::life::Given;
use super::load::present;
use crate::codec::TierKey;

/// # Loading, in tasks
///
/// On any runtime. Threads and tasks share one load.
impl<K, V> TieredCache<K, V>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Loads as [`get_or_load`](Self::get_or_load) does, for tasks. If the future is dropped,
    /// another caller loads.
    pub async fn get_or_load_async<F>(&self, key: K, load: F) -> V
    where
        F: Future<Output = V>,
    {
        let load = async { Ok::<_, Infallible>(Some(load.await.into())) };
        let loaded = self.load_async(key, false, load).await;
        present(loaded.unwrap_or_else(|never| match *never {}))
    }

    /// Loads as [`try_get_or_load`](Self::try_get_or_load) does, for tasks.
    ///
    /// # Errors
    ///
    /// The loader's.
    pub async fn try_get_or_load_async<F, E>(&self, key: K, load: F) -> Result<V, Arc<E>>
    where
        F: Future<Output = Result<V, E>>,
        E: Send + Sync + 'static,
    {
        let load = async { load.await.map(|value| Some(value.into())) };
        self.load_async(key, false, load).await.map(present)
    }

    /// Loads as [`get_or_load_with`](Self::get_or_load_with) does, for tasks.
    ///
    /// # Errors
    ///
    /// The loader's.
    pub async fn get_or_load_with_async<F, E>(&self, key: K, load: F) -> Result<Option<V>, Arc<E>>
    where
        F: Future<Output = Result<Option<Given<V>>, E>>,
        E: Send + Sync + 'static,
    {
        self.load_async(key, true, load).await
    }

    async fn load_async<F, E>(
        &self,
        key: K,
        may_be_absent: bool,
        load: F,
    ) -> Result<Option<V>, Arc<E>>
    where
        F: Future<Output = Result<Option<Given<V>>, E>>,
        E: Send + Sync + 'static,
    {
        let mut value = None;
        if self.hit(&key, &mut value) == Belief::Fresh && (may_be_absent || value.is_some()) {
            return Ok(value);
        }
        let inner = &*self.inner;
        let mut load = Some(load);
        loop {
            let old = inner.remove_unbelieved(&key);
            let (taken, asked, mut has_led) = (&mut load, &key, false);
            let fetch = inner.first.fetch(key.clone());
            let fetched = fetch
                .load_with_old_async(|kept| {
                    has_led = true;
                    let load =
                        async move { taken.take().expect("a load runs its loader once").await };
                    inner.miss(asked, kept.or(old), load)
                })
                .await;
            let value = match fetched.value {
                Ok(held) if has_led || inner.may_answer(&held, fetched.outcome) => held.value,
                Ok(_) => continue,
                Err(error) => return Err(error),
            };
            // Another loader of this key says that there is nothing, here or through the engine,
            // and this one knows no absence.
            return match load.take().filter(|_| value.is_none() && !may_be_absent) {
                Some(load) => Ok(load.await.map_err(Arc::new)?.map(|given| given.value)),
                None => Ok(value),
            };
        }
    }
}
