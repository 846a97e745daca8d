//! `get_or_load` and its variants for threads.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use super::cache::Cache;
use crate::lifetime::Loaded;
use crate::load::{never, value};

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// The value of a key; if there is none, that of the loader, which is stored.
    ///
    /// However many threads and tasks ask for a key at the same time, one loader runs; the others wait and
    /// get a clone of its value. If it panics, one of those who wait runs its own loader, and the others go
    /// on waiting. The loader runs on this thread without any lock and may use the cache, other keys' loads
    /// included; but two loaders that ask for each other's keys wait for ever, as with locks.
    ///
    /// Whoever inserts, updates, removes or invalidates the key during the load supersedes it: the loaded
    /// value goes to those who were waiting, it is not stored, and who asks from then on does not get it.
    ///
    /// Past an entry's soft deadline ([`Builder::refresh_after`](crate::Builder::refresh_after),
    /// [`Lifetime::fresh_for`](crate::Lifetime::fresh_for)) one caller runs its loader, and the others get
    /// the old value meanwhile; with a refresher
    /// ([`Builder::refresh_with`](crate::Builder::refresh_with)) all get the old value.
    ///
    /// A loader returns the value, or a [`Loaded`] to give it a lifetime of its own.
    ///
    /// # Panics
    ///
    /// If the loader asks for the same key, which would wait for itself; if an asynchronous load of the key
    /// is unfinished that this very thread polled last, for to wait here may keep it from ever being polled
    /// again: tasks use [`get_or_load_async`](Self::get_or_load_async); and if the loader panics.
    pub fn get_or_load<T>(&self, key: K, load: impl FnOnce() -> T) -> V
    where
        T: Into<Loaded<V>>,
    {
        match self.inner.load(key, false, || value(load())) {
            Ok(Some(value)) => value,
            Ok(None) => unreachable!("this loader always has a value"),
            Err(error) => never(&error),
        }
    }

    /// As [`get_or_load`](Self::get_or_load), with a loader that may fail.
    ///
    /// Those who wait share the error if theirs is of the same type; others run their own loader. With
    /// [`Builder::negative_ttl`](crate::Builder::negative_ttl) the error is remembered for that long and
    /// answered without a call of a loader. An insertion or removal of the key forgets it, and so do
    /// [`invalidate_all`](Self::invalidate_all) and the removal of its old value by
    /// [`invalidate_if`](Self::invalidate_if). Expiry, eviction and
    /// [`invalidate_tag`](Self::invalidate_tag) do not.
    ///
    /// While there is an old value, it is answered in place of the error: past its soft deadline, and after
    /// its end for as long as [`Builder::stale_on_error`](crate::Builder::stale_on_error) allows.
    ///
    /// # Errors
    ///
    /// The loader's.
    ///
    /// # Panics
    ///
    /// As [`get_or_load`](Self::get_or_load).
    pub fn try_get_or_load<T, E>(
        &self,
        key: K,
        load: impl FnOnce() -> Result<T, E>,
    ) -> Result<V, Arc<E>>
    where
        T: Into<Loaded<V>>,
        E: Send + Sync + 'static,
    {
        match self
            .inner
            .load(key, false, || load().map(|loaded| Some(loaded.into())))?
        {
            Some(value) => Ok(value),
            None => unreachable!("this loader has a value or fails"),
        }
    }

    /// As [`get_or_load`](Self::get_or_load), with a loader that may find that there is no such thing.
    ///
    /// An absence is shared with those who wait, and remembered for
    /// [`Builder::negative_ttl`](crate::Builder::negative_ttl). An old value past its soft deadline goes.
    ///
    /// # Panics
    ///
    /// As [`get_or_load`](Self::get_or_load).
    pub fn optionally_get_or_load<T>(&self, key: K, load: impl FnOnce() -> Option<T>) -> Option<V>
    where
        T: Into<Loaded<V>>,
    {
        self.inner
            .load(key, true, || Ok(load().map(Into::into)))
            .unwrap_or_else(|error| never(&error))
    }
}
