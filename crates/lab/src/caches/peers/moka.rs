//! moka: an entry's TTL is a function of its value, so the value carries it.

use std::time::{Duration, Instant};

use moka::Expiry;
use moka::sync::Cache;

use super::super::kind::Settings;
use super::super::subject::{Hasher, Key, Subject, Value};

/// 0 for no TTL.
#[derive(Clone)]
struct Timed<V> {
    value: V,
    ttl_ms: u32,
}

impl<V> Timed<V> {
    fn new(value: V, ttl: Option<Duration>) -> Self {
        let ttl_ms = ttl.map_or(0, |ttl| u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX));
        Self { value, ttl_ms }
    }

    fn ttl(&self) -> Option<Duration> {
        (self.ttl_ms > 0).then(|| Duration::from_millis(u64::from(self.ttl_ms)))
    }
}

struct OwnTtl;

impl<K, V> Expiry<K, Timed<V>> for OwnTtl {
    fn expire_after_create(&self, _: &K, timed: &Timed<V>, _: Instant) -> Option<Duration> {
        timed.ttl()
    }

    fn expire_after_update(
        &self,
        _: &K,
        timed: &Timed<V>,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        timed.ttl()
    }
}

pub(in super::super) struct Moka<K, V>(Cache<K, Timed<V>, Hasher>);

impl<K: Key, V: Value> Moka<K, V> {
    pub(in super::super) fn new(settings: &Settings) -> Self {
        Self(
            Cache::builder()
                .max_capacity(settings.capacity as u64)
                .expire_after(OwnTtl)
                .build_with_hasher(Hasher::default()),
        )
    }
}

impl<K: Key, V: Value> Subject<K, V> for Moka<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.0.get(key).map(|timed| timed.value)
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        self.0.insert(key, Timed::new(value, ttl));
    }

    fn settle(&self) {
        self.0.run_pending_tasks();
    }

    fn get_or_load(&self, key: &K, ttl: Option<Duration>, load: &dyn Fn() -> V) -> V {
        self.0
            .get_with_by_ref(key, || Timed::new(load(), ttl))
            .value
    }
}
