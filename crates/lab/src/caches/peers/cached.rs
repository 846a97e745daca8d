//! cached: the sharded LRU whose values tell when they are due.

use std::time::Duration;

use anyhow::Result;
use cached::{Expires, ShardedExpiringLruCache};

use super::super::kind::Settings;
use super::super::subject::{Hasher, Key, Subject, Value};
use crate::clock;

#[derive(Clone)]
struct Due<V> {
    value: V,
    deadline_ns: u64,
}

impl<V> Expires for Due<V> {
    fn is_expired(&self) -> bool {
        clock::mono_ns() >= self.deadline_ns
    }
}

pub(in super::super) struct Cached<K, V>(ShardedExpiringLruCache<K, Due<V>, Hasher>);

impl<K: Key, V: Value> Cached<K, V> {
    pub(in super::super) fn new(settings: &Settings) -> Result<Self> {
        Ok(Self(
            ShardedExpiringLruCache::builder()
                .max_size(settings.capacity)
                .hasher(Hasher::default())
                .build()?,
        ))
    }
}

impl<K: Key, V: Value> Subject<K, V> for Cached<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.0.get(key).map(|due| due.value)
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        let deadline_ns = clock::deadline_ns(ttl);
        drop(self.0.set(key, Due { value, deadline_ns }));
    }
}
