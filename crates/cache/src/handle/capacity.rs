//! The capacity of a cache in use, and the entries that are not evicted for it.

use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::cache::Cache;

/// # Capacity
///
/// The policy decides which entry is evicted for which; see the [crate](crate#eviction).
impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Returns the capacity, in entries or in weight; `None` if it is unbounded.
    #[must_use]
    pub fn max_capacity(&self) -> Option<u64> {
        self.inner.rules.account.capacity()
    }

    /// Changes how much the cache may hold, for example when the machine runs short of memory.
    /// `false`, and nothing happens, if it was built [unbounded](crate::Builder::unbounded).
    ///
    /// A smaller capacity evicts what is too much before this returns: of each shard that has to
    /// give, what is due first; the policy chooses the rest. That costs what is evicted, and holds
    /// each shard's lock for some 16 entries at a time. Who inserts meanwhile may make the cache
    /// exceed the capacity by a few entries for that long. [Pinned](Self::pin) entries stay: if
    /// they alone weigh more, the weight exceeds the capacity until they leave or are unpinned.
    /// With 0 nothing is kept that weighs anything: what weighs 1 is stored and evicted at once,
    /// and what is heavier is refused.
    ///
    /// A larger one costs nothing. The number of shards stays as it was built: who means to raise
    /// the capacity a hundredfold sets [`Builder::shards`](crate::Builder::shards).
    ///
    /// ```
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let cache = tidewheel::Cache::<u32, u32>::builder().max_capacity(1000).no_default_ttl().build()?;
    /// for key in 0..1000 { cache.insert(key, key); }
    /// assert!(cache.set_max_capacity(100));
    /// assert_eq!((cache.max_capacity(), cache.len()), (Some(100), 100));
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_max_capacity(&self, capacity: u64) -> bool {
        let inner = &*self.inner;
        if inner.rules.account.capacity().is_none() {
            return false;
        }
        inner.rules.account.set_capacity(capacity);
        inner.collect();
        true
    }
}

/// # Pinning
impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Keeps a key from being evicted, whatever room is needed; tells whether it is there. It still
    /// expires, and can be replaced (the new value is pinned too), removed and invalidated. Once
    /// all that is left is pinned, what is stored next is evicted in its place or exceeds the
    /// capacity.
    pub fn pin<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.set_pinned(key, true)
    }

    /// Lets a key be evicted again; tells whether it is there. It goes at once if the capacity has
    /// [shrunk](Self::set_max_capacity), and what was pinned is too much for it.
    pub fn unpin<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let is_there = self.set_pinned(key, false);
        if self.inner.rules.account.debt() > 0 {
            self.inner.collect();
        }
        is_there
    }

    /// Returns whether a key is there and pinned.
    pub fn is_pinned<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.look(key, |shard, slot| shard.store.is_pinned(slot))
            .unwrap_or(false)
    }

    fn set_pinned<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q, pinned: bool) -> bool {
        let inner = &*self.inner;
        let hash = inner.hash(key);
        inner.change(inner.cell(hash), |shard, now| {
            let slot = shard.find_live(hash, key, now);
            if let Some(slot) = slot {
                shard.store.set_pinned(slot, pinned);
            }
            slot.is_some()
        })
    }
}
