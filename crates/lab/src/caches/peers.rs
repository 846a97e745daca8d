//! Other people's caches as subjects. A TTL that a cache has no place for is left out.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use cached::{Expires, ShardedExpiringLruCache};
use quick_cache::UnitWeighter;
use quick_cache::sync::DefaultLifecycle;

use super::kind::CacheKind;
use super::subject::{Hasher, Key, Subject, Value};
use crate::clock;
use crate::studies::expiry::caches::ticker::Ticker;

/// An empty one with room for so many entries.
pub(super) fn build<K: Key, V: Value>(
    kind: CacheKind,
    capacity: usize,
) -> Result<Box<dyn Subject<K, V>>> {
    let (weight, hasher) = (capacity as u64, Hasher::default());
    Ok(match kind {
        CacheKind::Moka => {
            let builder = moka::sync::Cache::builder().max_capacity(weight);
            Box::new(builder.expire_after(OwnTtl).build_with_hasher(hasher))
        }
        CacheKind::QuickCache => {
            let lifecycle = DefaultLifecycle::default();
            let with = quick_cache::sync::Cache::with;
            Box::new(with(capacity, weight, UnitWeighter, hasher, lifecycle))
        }
        CacheKind::Cached => {
            let builder = ShardedExpiringLruCache::builder().max_size(capacity);
            Box::new(builder.hasher(hasher).build()?)
        }
        CacheKind::Papaya => Box::new(Papaya::new()?),
        _ => bail!("{kind} is no peer"),
    })
}

/// moka: an entry's TTL is a function of its value, so the value carries it. 0 for no TTL.
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

impl<K, V> moka::Expiry<K, Timed<V>> for OwnTtl {
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

impl<K: Key, V: Value> Subject<K, V> for moka::sync::Cache<K, Timed<V>, Hasher> {
    fn get(&self, key: &K) -> Option<V> {
        self.get(key).map(|timed| timed.value)
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        self.insert(key, Timed::new(value, ttl));
    }

    fn settle(&self) {
        self.run_pending_tasks();
    }

    fn get_or_load(&self, key: &K, ttl: Option<Duration>, load: &dyn Fn() -> V) -> V {
        self.get_with_by_ref(key, || Timed::new(load(), ttl)).value
    }
}

/// No TTL.
impl<K: Key, V: Value> Subject<K, V> for quick_cache::sync::Cache<K, V, UnitWeighter, Hasher> {
    fn get(&self, key: &K) -> Option<V> {
        self.get(key)
    }

    fn insert(&self, key: K, value: V, _: Option<Duration>) {
        self.insert(key, value);
    }

    fn get_or_load(&self, key: &K, _: Option<Duration>, load: &dyn Fn() -> V) -> V {
        let Ok(value) = self.get_or_insert_with(key, || Ok::<V, Infallible>(load()));
        value
    }
}

/// cached: the sharded LRU whose values tell when they are due.
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

impl<K: Key, V: Value> Subject<K, V> for ShardedExpiringLruCache<K, Due<V>, Hasher> {
    fn get(&self, key: &K) -> Option<V> {
        self.get(key).map(|due| due.value)
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        let deadline_ns = clock::deadline_ns(ttl);
        drop(self.set(key, Due { value, deadline_ns }));
    }
}

/// papaya: a lock-free map, and what its users write themselves for a TTL: a deadline in the value,
/// looked at by `get`, and a thread that walks the map once a second.
struct Papaya<K, V> {
    map: Arc<papaya::HashMap<K, (V, u64), Hasher>>,
    ticker: Ticker,
}

impl<K: Key, V: Value> Papaya<K, V> {
    fn new() -> Result<Self> {
        let map = Arc::new(papaya::HashMap::with_hasher(Hasher::default()));
        let theirs: Arc<papaya::HashMap<K, (V, u64), Hasher>> = Arc::clone(&map);
        let ticker = Ticker::start(move || {
            let now = clock::mono_ns();
            theirs.pin().retain(|_, (_, deadline)| now < *deadline);
        })?;
        Ok(Self { map, ticker })
    }
}

impl<K: Key, V: Value> Subject<K, V> for Papaya<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        let map = self.map.pin();
        let found = map.get(key);
        let alive = found.filter(|(_, deadline)| clock::mono_ns() < *deadline);
        alive.map(|(value, _)| value.clone())
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        self.map.pin().insert(key, (value, clock::deadline_ns(ttl)));
    }

    fn rest(&self, resting: bool) {
        self.ticker.rest(resting);
    }
}
