//! `Subject` is the interface of a cache that is measured.
//!
//! The passes that throughput is measured with are default methods: every cache gets its own copy
//! of the loop with its `get` and `insert` inlined, and no call through the trait stands between
//! two operations.

use std::hash::Hash;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock;
use crate::rng::{Rng, mix};

/// The hasher of every cache that takes one. stretto, pingora-memory-cache and, within a shard,
/// `cached` keep their own.
pub(crate) type Hasher = foldhash::fast::RandomState;

/// Operations between two looks at the stop flag.
const STRIDE: usize = 64;
/// Fresh ids that a thread takes at a time: the shared counter must not be what is measured.
const ID_BLOCK: u64 = 1 << 16;
/// The time to live of a write of the mixed load: between 30 and 60 s.
const MIXED_TTL_MS: (u64, u64) = (30_000, 60_000);

/// A key by its number.
pub(crate) trait Key: Hash + Eq + Clone + Send + Sync + 'static {
    fn of(id: u64) -> Self;
}

impl Key for u64 {
    fn of(id: u64) -> Self {
        mix(id)
    }
}

impl Key for String {
    /// 16 bytes for every id below 10^12.
    fn of(id: u64) -> Self {
        format!("key-{id:012}")
    }
}

/// A value by its key's number.
pub(crate) trait Value: Clone + Send + Sync + 'static {
    fn for_key(id: u64) -> Self;
}

impl Value for u64 {
    fn for_key(id: u64) -> Self {
        id
    }
}

impl Value for [u8; 32] {
    fn for_key(id: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&id.to_le_bytes());
        bytes
    }
}

impl Value for Box<[u8]> {
    fn for_key(id: u64) -> Self {
        Box::new(<[u8; 32]>::for_key(id))
    }
}

/// The result of one thread in one sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pass {
    pub(crate) operations: u64,
    pub(crate) hits: u64,
    pub(crate) ns: u64,
}

impl Pass {
    pub(crate) fn millions_per_s(&self) -> f64 {
        self.operations as f64 * 1e3 / self.ns.max(1) as f64
    }
}

/// A cache that is measured.
pub(crate) trait Subject<K: Key, V: Value>: Send + Sync {
    fn get(&self, key: &K) -> Option<V>;

    /// Caches that have no TTL of an entry's own leave it out.
    fn insert(&self, key: K, value: V, ttl: Option<Duration>);

    /// Waits until what was inserted is there, where inserts are finished in the background.
    fn settle(&self) {}

    /// The value, loaded if it is missing: by the cache's own single-flight where it has one.
    fn get_or_load(&self, key: &K, ttl: Option<Duration>, load: &dyn Fn() -> V) -> V {
        self.get(key).unwrap_or_else(|| {
            let value = load();
            self.insert(key.clone(), value.clone(), ttl);
            value
        })
    }

    /// Pauses its sweeps, or lets them go on: while another cache is sampled in the same process, a
    /// walk over a million entries would be the other's noise.
    fn rest(&self, _resting: bool) {}

    /// Entries that it holds, dead ones among them, where it can tell.
    fn held(&self) -> Option<usize> {
        None
    }

    /// Reads `keys`, a power of two of them, around and around.
    fn get_pass(&self, keys: &[K], start: usize, stop: &AtomicBool) -> Pass {
        let mask = keys.len() - 1;
        let mut at = start;
        timed(stop, || {
            let hit = black_box(self.get(&keys[at & mask])).is_some();
            at = at.wrapping_add(1);
            hit
        })
    }

    /// Three reads to one write with a TTL, over the same keys.
    fn mixed_pass(&self, keys: &[K], start: usize, stop: &AtomicBool) -> Pass {
        let mask = keys.len() - 1;
        let mut rng = Rng::new(start as u64);
        let mut at = start;
        timed(stop, || {
            let key = &keys[at & mask];
            at = at.wrapping_add(1);
            let draw = rng.next_u64();
            if draw & 3 == 0 {
                self.insert(key.clone(), V::for_key(draw), Some(mixed_ttl(draw >> 8)));
                return false;
            }
            black_box(self.get(key)).is_some()
        })
    }

    /// Inserts keys that were never seen before, numbered from `ids`.
    fn insert_pass(&self, ids: &AtomicU64, stop: &AtomicBool) -> Pass {
        let mut rng = Rng::new(ids.load(Ordering::Relaxed));
        let (mut next, mut end) = (0, 0);
        timed(stop, || {
            if next == end {
                next = ids.fetch_add(ID_BLOCK, Ordering::Relaxed);
                end = next + ID_BLOCK;
            }
            self.insert(
                K::of(next),
                V::for_key(next),
                Some(mixed_ttl(rng.next_u64())),
            );
            next += 1;
            false
        })
    }
}

/// Operations until the stop; each tells whether it was a hit.
#[inline]
fn timed(stop: &AtomicBool, mut operation: impl FnMut() -> bool) -> Pass {
    let mut pass = Pass::default();
    let from = clock::mono_ns();
    while pass.operations == 0 || !stop.load(Ordering::Relaxed) {
        for _ in 0..STRIDE {
            pass.hits += u64::from(operation());
        }
        pass.operations += STRIDE as u64;
    }
    pass.ns = clock::mono_ns() - from;
    pass
}

#[inline]
fn mixed_ttl(draw: u64) -> Duration {
    let (low, high) = MIXED_TTL_MS;
    Duration::from_millis(low + draw % (high - low))
}
