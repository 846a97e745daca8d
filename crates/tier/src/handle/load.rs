//! Threads load through these calls.

use std::convert::Infallible;
use std::hash::Hash;
use std::sync::Arc;

use super::block::block_on;
use super::cache::TieredCache;
use super::held::Belief;
use super::life::Given;
use crate::codec::TierKey;

/// # Loading, on threads
impl<K, V> TieredCache<K, V>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// The value of a key; if neither tier has one, that of the loader, which is stored in both.
    ///
    /// Of all callers in all processes, one runs its loader; the others wait for it. See the
    /// [crate](crate) for what happens if it takes long, or the engine is away.
    ///
    /// # Panics
    ///
    /// As [`tidewheel::Cache::get_or_load`].
    pub fn get_or_load(&self, key: K, load: impl FnOnce() -> V) -> V {
        let loaded = self.load(key, false, || Ok::<_, Infallible>(Some(load().into())));
        present(loaded.unwrap_or_else(|never| match *never {}))
    }

    /// Loads as [`get_or_load`](Self::get_or_load) does, with a loader that may fail. While an old
    /// value is kept, that is answered in place of the error.
    ///
    /// # Errors
    ///
    /// The loader's.
    ///
    /// # Panics
    ///
    /// As [`tidewheel::Cache::get_or_load`].
    pub fn try_get_or_load<E>(
        &self,
        key: K,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, Arc<E>>
    where
        E: Send + Sync + 'static,
    {
        self.load(key, false, || load().map(|value| Some(value.into())))
            .map(present)
    }

    /// Loads as [`try_get_or_load`](Self::try_get_or_load) does, with a loader that says how long
    /// its value lives, or that there is none.
    ///
    /// # Errors
    ///
    /// The loader's.
    ///
    /// # Panics
    ///
    /// As [`tidewheel::Cache::get_or_load`].
    pub fn get_or_load_with<E>(
        &self,
        key: K,
        load: impl FnOnce() -> Result<Option<Given<V>>, E>,
    ) -> Result<Option<V>, Arc<E>>
    where
        E: Send + Sync + 'static,
    {
        self.load(key, true, load)
    }

    fn load<E>(
        &self,
        key: K,
        may_be_absent: bool,
        load: impl FnOnce() -> Result<Option<Given<V>>, E>,
    ) -> Result<Option<V>, Arc<E>>
    where
        E: Send + Sync + 'static,
    {
        let mut value = None;
        if self.hit(&key, &mut value) == Belief::Fresh && (may_be_absent || value.is_some()) {
            return Ok(value);
        }
        self.load_missing(key, may_be_absent, load)
    }

    // Apart, so that a hit pays for nothing of it.
    #[inline(never)]
    fn load_missing<E>(
        &self,
        key: K,
        may_be_absent: bool,
        load: impl FnOnce() -> Result<Option<Given<V>>, E>,
    ) -> Result<Option<V>, Arc<E>>
    where
        E: Send + Sync + 'static,
    {
        let inner = &*self.inner;
        let mut load = Some(load);
        loop {
            let old = inner.remove_unbelieved(&key);
            let (taken, mut has_led) = (&mut load, false);
            let fetched = inner.first.fetch(key.clone()).load_with_old(|kept| {
                has_led = true;
                let load = async move { taken.take().expect("a load runs its loader once")() };
                block_on(inner.miss(&key, kept.or(old), load))
            });
            let value = match fetched.value {
                Ok(held) if has_led || inner.may_answer(&held, fetched.outcome) => held.value,
                Ok(_) => continue,
                Err(error) => return Err(error),
            };
            // Another loader of this key says that there is nothing, here or through the engine,
            // and this one knows no absence.
            return match load.take().filter(|_| value.is_none() && !may_be_absent) {
                Some(load) => Ok(load().map_err(Arc::new)?.map(|given| given.value)),
                None => Ok(value),
            };
        }
    }
}

/// The value of a load whose loader knows no absence.
pub(super) fn present<V>(value: Option<V>) -> V {
    value.expect("a loader that knows no absence has run, or another one's value was there")
}
