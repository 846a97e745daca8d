//! Other people's caches as subjects. A TTL that a cache has no place for is left out.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use cached::{Expires, ShardedExpiringLruCache};
use mini_moka::sync::ConcurrentCacheExt;
use pingora_memory_cache::MemoryCache;
use quick_cache::UnitWeighter;
use quick_cache::sync::DefaultLifecycle;

use super::kind::Kind;
use super::subject::{Hasher, Key, Subject, Value};
use crate::clock;
use crate::locks::lock;
use crate::studies::expiry::caches::ticker::Ticker;

/// What a cache without a default TTL, which wants one for every entry, is told for "none".
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3_600);
/// The one TTL of mini-moka.
const AN_HOUR: Duration = Duration::from_secs(3_600);
/// An insert that stretto refuses is tried again so often; then it is given up, as its users would.
const TRIES: usize = 1_000;
/// stretto's counters per entry, as its documentation advises.
const COUNTERS_PER_ENTRY: usize = 10;

/// An empty one with room for so many entries.
pub(super) fn build<K: Key, V: Value>(
    kind: Kind,
    capacity: usize,
) -> Result<Box<dyn Subject<K, V>>> {
    let (weight, hasher) = (capacity as u64, Hasher::default());
    Ok(match kind {
        Kind::Moka => {
            let builder = moka::sync::Cache::builder().max_capacity(weight);
            Box::new(builder.expire_after(OwnTtl).build_with_hasher(hasher))
        }
        Kind::MiniMoka => {
            let builder = mini_moka::sync::Cache::builder().max_capacity(weight);
            Box::new(builder.time_to_live(AN_HOUR).build_with_hasher(hasher))
        }
        Kind::QuickCache => {
            let lifecycle = DefaultLifecycle::default();
            let with = quick_cache::sync::Cache::with;
            Box::new(with(capacity, weight, UnitWeighter, hasher, lifecycle))
        }
        Kind::Stretto => {
            let counters = capacity.saturating_mul(COUNTERS_PER_ENTRY);
            Box::new(stretto::Cache::new(counters, i64::try_from(capacity)?)?)
        }
        Kind::Cached => {
            let builder = ShardedExpiringLruCache::builder().max_size(capacity);
            Box::new(builder.hasher(hasher).build()?)
        }
        Kind::Foyer => {
            let builder = foyer_memory::CacheBuilder::new(capacity);
            let cache: foyer_memory::Cache<K, V, Hasher> =
                builder.with_hash_builder(hasher).build();
            Box::new(cache)
        }
        Kind::Pingora => Box::new(MemoryCache::new(capacity)),
        Kind::TtlCache => {
            let cache = ttl_cache::TtlCache::with_hasher(capacity, hasher);
            Box::new(Mutex::new(cache))
        }
        Kind::Papaya => Box::new(Papaya::new()?),
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

/// One TTL for the whole cache.
impl<K: Key, V: Value> Subject<K, V> for mini_moka::sync::Cache<K, V, Hasher> {
    fn get(&self, key: &K) -> Option<V> {
        self.get(key)
    }

    fn insert(&self, key: K, value: V, _: Option<Duration>) {
        self.insert(key, value);
    }

    fn settle(&self) {
        self.sync();
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

/// Inserts are buffered and may be refused while the buffer is full.
impl<K: Key, V: Value> Subject<K, V> for stretto::Cache<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.get(key).map(|value| value.value().clone())
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        let ttl = ttl.unwrap_or_default();
        for _ in 0..TRIES {
            if self.insert_with_ttl(key.clone(), value.clone(), 1, ttl) {
                return;
            }
            std::thread::yield_now();
        }
    }

    fn settle(&self) {
        if let Err(error) = self.wait() {
            eprintln!("stretto cannot wait: {error}");
        }
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

/// foyer-memory with its LRU: no TTL.
impl<K: Key, V: Value> Subject<K, V> for foyer_memory::Cache<K, V, Hasher> {
    fn get(&self, key: &K) -> Option<V> {
        self.get(key).map(|entry| entry.value().clone())
    }

    fn insert(&self, key: K, value: V, _: Option<Duration>) {
        drop(self.insert(key, value));
    }
}

/// pingora-memory-cache: TinyUFO and a TTL that is looked at when a key is read.
impl<K: Key, V: Value> Subject<K, V> for MemoryCache<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.get(key).0
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        self.put(&key, value, ttl);
    }
}

/// ttl_cache: made for one thread, so it stands behind a mutex.
impl<K: Key, V: Value> Subject<K, V> for Mutex<ttl_cache::TtlCache<K, V, Hasher>> {
    fn get(&self, key: &K) -> Option<V> {
        let cache = lock(self);
        cache.get(key).cloned()
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        let mut cache = lock(self);
        let replaced = cache.insert(key, value, ttl.unwrap_or(FOREVER));
        drop(cache);
        drop(replaced);
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
