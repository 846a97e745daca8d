//! Tidewheel's cache, with its own thread for the expiry, as its users get it.

use std::time::Duration;

use anyhow::Result;
use tidewheel::{Cache, Lifetime, Loaded};

use super::subject::{Hasher, Key, Subject, Value};

pub(super) struct Tidewheel<K: Key, V: Value>(Cache<K, V, Hasher>);

impl<K: Key, V: Value> Tidewheel<K, V> {
    pub(super) fn new(capacity: usize) -> Result<Self> {
        let builder = Cache::builder().max_capacity(capacity as u64);
        let builder = builder.no_default_ttl().hasher(Hasher::default());
        Ok(Self(builder.build()?))
    }
}

impl<K: Key, V: Value> Subject<K, V> for Tidewheel<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.0.get(key)
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        match ttl {
            Some(ttl) => self.0.insert_with_ttl(key, value, ttl),
            None => self.0.insert(key, value),
        }
    }

    fn held(&self) -> Option<usize> {
        Some(self.0.len())
    }

    fn get_or_load(&self, key: &K, ttl: Option<Duration>, load: &dyn Fn() -> V) -> V {
        let lifetime = ttl.map_or_else(Lifetime::forever, Lifetime::ttl);
        let load = || Loaded::new(load(), lifetime);
        self.0.get_or_load_with(key.clone(), load)
    }
}
