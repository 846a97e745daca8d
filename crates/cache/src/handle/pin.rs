//! Pinning: entries that are not evicted.

use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::cache::Cache;

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

    fn set_pinned<Q>(&self, key: &Q, pinned: bool) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let inner = &*self.inner;
        let hash = inner.hash(key);
        inner.change(inner.cell(hash), |shard, now| {
            let slot = shard.find_live(&inner.rules, hash, key, now);
            if let Some(slot) = slot {
                shard.store.set_pinned(slot, pinned);
            }
            slot.is_some()
        })
    }
}
