//! Tidewheel's cache, with its own thread for the expiry, as its users get it.

use std::time::Duration;

use tidewheel::{Cache, Lifetime, Loaded};

use super::subject::{Hasher, Key, Subject, Value};

impl<K: Key, V: Value> Subject<K, V> for Cache<K, V, Hasher> {
    fn get(&self, key: &K) -> Option<V> {
        self.get(key)
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        match ttl {
            Some(ttl) => self.insert_with_ttl(key, value, ttl),
            None => self.insert(key, value),
        }
    }

    fn held(&self) -> Option<usize> {
        Some(self.len())
    }

    fn get_or_load(&self, key: &K, ttl: Option<Duration>, load: &dyn Fn() -> V) -> V {
        let lifetime = ttl.map_or_else(Lifetime::forever, Lifetime::ttl);
        let load = || Loaded::new(load(), lifetime);
        self.fetch(key.clone()).load_with(load).value
    }
}
