//! Other people's caches, each kept within its capacity and on one thread.

use std::cell::RefCell;

use anyhow::Result;
use foyer_memory::{Cache, CacheBuilder, EvictionConfig};
use foyer_memory::{LfuConfig, LruConfig, S3FifoConfig, SieveConfig};
use mini_moka::sync::ConcurrentCacheExt;

use super::policy::Policy;
use super::replay::{Hasher, replay};

/// foyer's with one shard.
pub(super) const PEERS: [Policy; 8] = [
    Policy::peer("moka", "moka", moka),
    Policy::peer("mini-moka", "mini-moka", mini_moka),
    Policy::peer("quick-cache", "quick_cache", quick_cache),
    Policy::peer("foyer-lru", FOYER, |keys, n| {
        foyer(keys, n, LruConfig::default())
    }),
    Policy::peer("foyer-s3fifo", FOYER, |keys, n| {
        foyer(keys, n, S3FifoConfig::default())
    }),
    Policy::peer("foyer-lfu", FOYER, |keys, n| {
        foyer(keys, n, LfuConfig::default())
    }),
    Policy::peer("foyer-sieve", FOYER, |keys, n| foyer(keys, n, SieveConfig)),
    Policy::peer("tinyufo", "TinyUFO", tinyufo),
];
const FOYER: &str = "foyer-memory";

/// What moka puts off it is made to do at once: else it holds hundreds of entries too many.
fn moka(keys: &[u64], capacity: usize) -> Result<u64> {
    let cache = moka::sync::Cache::builder()
        .max_capacity(capacity as u64)
        .build_with_hasher(Hasher::default());
    let find = |key| cache.get(&key).is_some();
    Ok(replay(keys, find, |key| {
        cache.insert(key, ());
        cache.run_pending_tasks();
    }))
}

/// As [`moka`].
fn mini_moka(keys: &[u64], capacity: usize) -> Result<u64> {
    let cache = mini_moka::sync::Cache::builder()
        .max_capacity(capacity as u64)
        .build_with_hasher(Hasher::default());
    let find = |key| cache.get(&key).is_some();
    Ok(replay(keys, find, |key| {
        cache.insert(key, ());
        cache.sync();
    }))
}

fn quick_cache(keys: &[u64], capacity: usize) -> Result<u64> {
    let cache = RefCell::new(quick_cache::unsync::Cache::new(capacity));
    let find = |key| cache.borrow_mut().get(&key).is_some();
    let add = |key| cache.borrow_mut().insert(key, ());
    Ok(replay(keys, find, add))
}

fn foyer(keys: &[u64], capacity: usize, policy: impl Into<EvictionConfig>) -> Result<u64> {
    let cache: Cache<u64, (), Hasher> = CacheBuilder::new(capacity)
        .with_shards(1)
        .with_eviction_config(policy)
        .with_hash_builder(Hasher::default())
        .build();
    let find = |key| cache.get(&key).is_some();
    Ok(replay(keys, find, |key| drop(cache.insert(key, ()))))
}

fn tinyufo(keys: &[u64], capacity: usize) -> Result<u64> {
    let cache = tinyufo::TinyUfo::<u64, ()>::new(capacity, capacity);
    let find = |key| cache.get(&key).is_some();
    Ok(replay(keys, find, |key| drop(cache.put(key, (), 1))))
}
