//! stretto: inserts are buffered and may be refused while the buffer is full.

use std::time::Duration;

use anyhow::Result;
use stretto::Cache;

use super::super::kind::Settings;
use super::super::subject::{Key, Subject, Value};

/// An insert that is refused is tried again so often; then it is given up, as its users would.
const TRIES: usize = 1_000;
/// Counters per entry, as its documentation advises.
const COUNTERS_PER_ENTRY: usize = 10;

pub(in super::super) struct Stretto<K, V: Value>(Cache<K, V>)
where
    K: Key;

impl<K: Key, V: Value> Stretto<K, V> {
    pub(in super::super) fn new(settings: &Settings) -> Result<Self> {
        let capacity = i64::try_from(settings.capacity)?;
        let counters = settings.capacity.saturating_mul(COUNTERS_PER_ENTRY);
        Ok(Self(Cache::new(counters, capacity)?))
    }
}

impl<K: Key, V: Value> Subject<K, V> for Stretto<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.0.get(key).map(|value| value.value().clone())
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        let ttl = ttl.unwrap_or_default();
        for _ in 0..TRIES {
            if self.0.insert_with_ttl(key.clone(), value.clone(), 1, ttl) {
                return;
            }
            std::thread::yield_now();
        }
    }

    fn settle(&self) {
        if let Err(error) = self.0.wait() {
            eprintln!("stretto cannot wait: {error}");
        }
    }
}
