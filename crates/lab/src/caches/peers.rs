//! Other people's caches as subjects. A TTL that a cache has no place for is left out.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use cached::{Expires, ShardedExpiringLruCache};
use mini_moka::sync::ConcurrentCacheExt;
use pingora_memory_cache::MemoryCache;
use quick_cache::UnitWeighter;
use quick_cache::sync::DefaultLifecycle;

use super::subject::{Hasher, Key, Subject, Value};
use crate::clock;
use crate::studies::expiry::caches::ticker::Ticker;

/// What a cache without a default TTL, which wants one for every entry, is told for "none".
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3_600);

/// moka: an entry's TTL is a function of its value, so the value carries it.
pub(super) struct Moka<K, V>(moka::sync::Cache<K, Timed<V>, Hasher>);

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

impl<K: Key, V: Value> Moka<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self(
            moka::sync::Cache::builder()
                .max_capacity(capacity as u64)
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

/// mini-moka: one TTL for the whole cache, an hour here.
pub(super) struct MiniMoka<K, V>(mini_moka::sync::Cache<K, V, Hasher>);

impl<K: Key, V: Value> MiniMoka<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self(
            mini_moka::sync::Cache::builder()
                .max_capacity(capacity as u64)
                .time_to_live(Duration::from_secs(3_600))
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

/// quick_cache: no TTL.
pub(super) struct QuickCache<K, V>(quick_cache::sync::Cache<K, V, UnitWeighter, Hasher>);

impl<K: Key, V: Value> QuickCache<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self(quick_cache::sync::Cache::with(
            capacity,
            capacity as u64,
            UnitWeighter,
            Hasher::default(),
            DefaultLifecycle::default(),
        ))
    }
}

impl<K: Key, V: Value> Subject<K, V> for QuickCache<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.0.get(key)
    }

    fn insert(&self, key: K, value: V, _: Option<Duration>) {
        self.0.insert(key, value);
    }

    fn get_or_load(&self, key: &K, _: Option<Duration>, load: &dyn Fn() -> V) -> V {
        let load = || Ok::<V, Infallible>(load());
        match self.0.get_or_insert_with(key, load) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }
}

/// stretto: inserts are buffered and may be refused while the buffer is full.
pub(super) struct Stretto<K: Key, V: Value>(stretto::Cache<K, V>);

/// An insert that is refused is tried again so often; then it is given up, as its users would.
const TRIES: usize = 1_000;
/// Counters per entry, as its documentation advises.
const COUNTERS_PER_ENTRY: usize = 10;

impl<K: Key, V: Value> Stretto<K, V> {
    pub(super) fn new(capacity: usize) -> Result<Self> {
        let counters = capacity.saturating_mul(COUNTERS_PER_ENTRY);
        Ok(Self(stretto::Cache::new(
            counters,
            i64::try_from(capacity)?,
        )?))
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

/// cached: the sharded LRU whose values tell when they are due.
pub(super) struct Cached<K, V>(ShardedExpiringLruCache<K, Due<V>, Hasher>);

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

impl<K: Key, V: Value> Cached<K, V> {
    pub(super) fn new(capacity: usize) -> Result<Self> {
        let builder = ShardedExpiringLruCache::builder().max_size(capacity);
        Ok(Self(builder.hasher(Hasher::default()).build()?))
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

/// foyer-memory with its LRU: no TTL.
pub(super) struct Foyer<K: Key, V: Value>(foyer_memory::Cache<K, V, Hasher>);

impl<K: Key, V: Value> Foyer<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        let builder = foyer_memory::CacheBuilder::new(capacity);
        Self(builder.with_hash_builder(Hasher::default()).build())
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

/// pingora-memory-cache: TinyUFO and a TTL that is looked at when a key is read.
pub(super) struct Pingora<K: Key, V: Value>(MemoryCache<K, V>);

impl<K: Key, V: Value> Pingora<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self(MemoryCache::new(capacity))
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

/// ttl_cache: made for one thread, so it stands behind a mutex.
pub(super) struct TtlCache<K: Key, V: Value>(Mutex<ttl_cache::TtlCache<K, V, Hasher>>);

impl<K: Key, V: Value> TtlCache<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        let cache = ttl_cache::TtlCache::with_hasher(capacity, Hasher::default());
        Self(Mutex::new(cache))
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

/// papaya: a lock-free map, and what its users write themselves for a TTL: a deadline in the value,
/// looked at by `get`, and a thread that walks the map once a second.
pub(super) struct Papaya<K, V> {
    map: Arc<papaya::HashMap<K, (V, u64), Hasher>>,
    ticker: Ticker,
}

impl<K: Key, V: Value> Papaya<K, V> {
    pub(super) fn new() -> io::Result<Self> {
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
