//! Other people's caches, each kept within its capacity and on one thread.

use std::cell::RefCell;

use foyer_memory::{Cache, CacheBuilder, EvictionConfig};
use mini_moka::sync::ConcurrentCacheExt;

use super::replay::{Hasher, replay};

/// What moka puts off it is made to do at once: else it holds hundreds of entries too many.
pub(super) fn moka(keys: &[u64], capacity: usize) -> u64 {
    let cache = moka::sync::Cache::builder()
        .max_capacity(capacity as u64)
        .build_with_hasher(Hasher::default());
    let find = |key| cache.get(&key).is_some();
    replay(keys, find, |key| {
        cache.insert(key, ());
        cache.run_pending_tasks();
    })
}

/// As [`moka`].
pub(super) fn mini_moka(keys: &[u64], capacity: usize) -> u64 {
    let cache = mini_moka::sync::Cache::builder()
        .max_capacity(capacity as u64)
        .build_with_hasher(Hasher::default());
    let find = |key| cache.get(&key).is_some();
    replay(keys, find, |key| {
        cache.insert(key, ());
        cache.sync();
    })
}

pub(super) fn quick_cache(keys: &[u64], capacity: usize) -> u64 {
    let cache = RefCell::new(quick_cache::unsync::Cache::new(capacity));
    let find = |key| cache.borrow_mut().get(&key).is_some();
    replay(keys, find, |key| cache.borrow_mut().insert(key, ()))
}

pub(super) fn foyer(keys: &[u64], capacity: usize, policy: impl Into<EvictionConfig>) -> u64 {
    let cache: Cache<u64, (), Hasher> = CacheBuilder::new(capacity)
        .with_shards(1)
        .with_eviction_config(policy)
        .with_hash_builder(Hasher::default())
        .build();
    let find = |key| cache.get(&key).is_some();
    replay(keys, find, |key| drop(cache.insert(key, ())))
}

pub(super) fn tinyufo(keys: &[u64], capacity: usize) -> u64 {
    let cache = tinyufo::TinyUfo::<u64, ()>::new(capacity, capacity);
    let find = |key| cache.get(&key).is_some();
    replay(keys, find, |key| {
        cache.put(key, (), 1);
    })
}
