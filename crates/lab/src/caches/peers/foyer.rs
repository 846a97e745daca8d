//! foyer-memory with its LRU: no TTL, so an entry's is left out.

use std::time::Duration;

use foyer_memory::{Cache, CacheBuilder};

use super::super::kind::Settings;
use super::super::subject::{Hasher, Key, Subject, Value};

pub(in super::super) struct Foyer<K: Key, V: Value>(Cache<K, V, Hasher>);

impl<K: Key, V: Value> Foyer<K, V> {
    pub(in super::super) fn new(settings: &Settings) -> Self {
        Self(
            CacheBuilder::new(settings.capacity)
                .with_hash_builder(Hasher::default())
                .build(),
        )
    }
}

impl<K: Key, V: Value> Subject<K, V> for Foyer<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.0.get(key).map(|entry| entry.value().clone())
    }

    fn insert(&self, key: K, value: V, _: Option<Duration>) {
        drop(self.0.insert(key, value));
    }
}
