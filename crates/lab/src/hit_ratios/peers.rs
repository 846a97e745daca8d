//! Other people's caches, each kept within its capacity and on one thread.

use std::cell::RefCell;

use anyhow::Result;
use foyer_memory::{Cache, CacheBuilder, EvictionConfig};
use foyer_memory::{LfuConfig, LruConfig, S3FifoConfig, SieveConfig};

use super::bounds::Hasher;
use super::policy::{Hits, Policy, replay};

/// foyer's with one shard.
pub(super) const PEERS: [Policy; 7] = [
    peer("moka", "moka", moka),
    peer("quick-cache", "quick_cache", quick_cache),
    peer("foyer-lru", FOYER, |keys, n| {
        foyer(keys, n, LruConfig::default())
    }),
    peer("foyer-s3fifo", FOYER, |keys, n| {
        foyer(keys, n, S3FifoConfig::default())
    }),
    peer("foyer-lfu", FOYER, |keys, n| {
        foyer(keys, n, LfuConfig::default())
    }),
    peer("foyer-sieve", FOYER, |keys, n| foyer(keys, n, SieveConfig)),
    peer("tinyufo", "TinyUFO", tinyufo),
];
const FOYER: &str = "foyer-memory";

const fn peer(name: &'static str, package: &'static str, hits: Hits) -> Policy {
    Policy::ours(name, hits).in_package(package)
}

/// Makes moka do at once what it puts off: else it holds hundreds of entries too many.
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
