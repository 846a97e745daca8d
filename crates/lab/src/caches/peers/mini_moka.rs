//! mini-moka: one TTL for the whole cache, an hour here; an entry's own is left out.

use std::time::Duration;

use mini_moka::sync::{Cache, ConcurrentCacheExt};

use super::super::kind::Settings;
use super::super::subject::{Hasher, Key, Subject, Value};

const TTL: Duration = Duration::from_secs(3_600);

pub(in super::super) struct MiniMoka<K, V>(Cache<K, V, Hasher>);

impl<K: Key, V: Value> MiniMoka<K, V> {
    pub(in super::super) fn new(settings: &Settings) -> Self {
        Self(
            Cache::builder()
                .max_capacity(settings.capacity as u64)
                .time_to_live(TTL)
                .build_with_hasher(Hasher::default()),
        )
    }
}

impl<K: Key, V: Value> Subject<K, V> for MiniMoka<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.0.get(key)
    }

    fn insert(&self, key: K, value: V, _: Option<Duration>) {
        self.0.insert(key, value);
    }

    fn settle(&self) {
        self.0.sync();
    }
}
