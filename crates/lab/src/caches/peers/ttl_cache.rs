//! ttl_cache: made for one thread, so it stands behind a mutex.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::super::kind::Settings;
use super::super::subject::{Hasher, Key, Subject, Value};
use super::FOREVER;

pub(in super::super) struct TtlCache<K: Key, V: Value>(Mutex<ttl_cache::TtlCache<K, V, Hasher>>);

impl<K: Key, V: Value> TtlCache<K, V> {
    pub(in super::super) fn new(settings: &Settings) -> Self {
        Self(Mutex::new(ttl_cache::TtlCache::with_hasher(
            settings.capacity,
            Hasher::default(),
        )))
    }
}

impl<K: Key, V: Value> Subject<K, V> for TtlCache<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        let cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.get(key).cloned()
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = cache.insert(key, value, ttl.unwrap_or(FOREVER));
        drop(cache);
        drop(replaced);
    }
}
