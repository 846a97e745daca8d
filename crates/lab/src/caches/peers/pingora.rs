//! pingora-memory-cache: TinyUFO and a TTL that is looked at when a key is read.

use std::time::Duration;

use pingora_memory_cache::MemoryCache;

use super::super::kind::Settings;
use super::super::subject::{Key, Subject, Value};

pub(in super::super) struct Pingora<K: Key, V: Value>(MemoryCache<K, V>);

impl<K: Key, V: Value> Pingora<K, V> {
    pub(in super::super) fn new(settings: &Settings) -> Self {
        Self(MemoryCache::new(settings.capacity))
    }
}

impl<K: Key, V: Value> Subject<K, V> for Pingora<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.0.get(key).0
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        self.0.put(&key, value, ttl);
    }
}
