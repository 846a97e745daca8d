//! Reads and stores many keys at once.

use std::cell::OnceCell;
use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::cache::Cache;
use crate::core::inner::{Inner, ShardCell};
use crate::core::read::Purpose;
use crate::lifetime::Lifetime;
use crate::shard::rules::Hashed;
use crate::time::Bound;

/// Keys that are looked for ahead of their turn.
const AHEAD: usize = 16;

/// With fewer keys there is nothing to be won by looking ahead.
const WORTH_IT: usize = 4;

/// # Many keys at once
impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// The values of many keys, in their order: what [`get`](Self::get) returns for each. Where the
    /// cache is larger than the processor's caches, this takes less time, since it waits for the
    /// memory of up to 16 keys at once. The clock is read once for these. In a small cache it takes
    /// longer than as many calls of `get`, since it locks a key's shard up to three times.
    ///
    /// ```
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let cache = tidewheel::Cache::<String, u32>::builder().max_capacity(9).no_default_ttl().build()?;
    /// cache.insert("tea".to_string(), 3);
    /// cache.insert("milk".to_string(), 4);
    /// assert_eq!(cache.get_many(["milk", "rum", "tea"]), [Some(4), None, Some(3)]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It is not a snapshot: another thread may write between two of the keys.
    /// [`get_or_load_many`](Self::get_or_load_many) loads what is missing.
    #[doc(alias = "getAllPresent", alias = "multi_get")]
    pub fn get_many<'q, Q>(&self, keys: impl IntoIterator<Item = &'q Q>) -> Vec<Option<V>>
    where
        Q: Hash + Equivalent<K> + ?Sized + 'q,
        V: Clone,
    {
        let inner = &*self.inner;
        let mut keys = keys.into_iter().fuse();
        let mut values = Vec::with_capacity(keys.size_hint().0);
        let mut batch = Vec::with_capacity(AHEAD);
        loop {
            let next = keys.by_ref().take(AHEAD);
            batch.extend(next.map(|key| (key, inner.hash(key))));
            if batch.is_empty() {
                return values;
            }
            inner.look_ahead(&batch, |(_, hash)| *hash);
            let now = OnceCell::new();
            let clock = |cell: &ShardCell<K, V, S>| match cell.has_deadlines() {
                true => *now.get_or_init(|| inner.bound()),
                false => Bound::NONE,
            };
            for (key, hash) in batch.drain(..) {
                values.push(inner.read_value(hash, key, clock, Purpose::Get, |value, _| value));
            }
        }
    }

    /// Stores many values with the configured lifetime: what [`insert`](Self::insert) does for
    /// each. Where the cache is larger than the processor's caches, this takes less time, since it
    /// waits for the memory of up to 16 keys at once. The clock is read once for these.
    ///
    /// ```
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let cache = tidewheel::Cache::<&str, u32>::builder().max_capacity(9).no_default_ttl().build()?;
    /// cache.insert_many([("tea", 3), ("milk", 4)]);
    /// assert_eq!(cache.get(&"milk"), Some(4));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Other threads may see some of the values before the others are stored. Of two values for a
    /// key the last one stays.
    #[doc(alias = "putAll", alias = "insert_all", alias = "extend")]
    pub fn insert_many(&self, entries: impl IntoIterator<Item = (K, V)>) {
        self.insert_many_with(entries, &Lifetime::configured());
    }

    /// As [`insert_many`](Self::insert_many), with a lifetime of their own, which is the same for
    /// all.
    pub fn insert_many_with(&self, entries: impl IntoIterator<Item = (K, V)>, lifetime: &Lifetime) {
        let inner = &*self.inner;
        let mut entries = entries.into_iter().fuse();
        let mut batch = Vec::with_capacity(AHEAD);
        loop {
            let next = entries.by_ref().take(AHEAD);
            batch.extend(next.map(|(key, value)| (inner.hash(&key), key, value)));
            if batch.is_empty() {
                return;
            }
            inner.look_ahead(&batch, |(hash, ..)| *hash);
            let now = OnceCell::new();
            let clock = || *now.get_or_init(|| inner.now());
            for (hash, key, value) in batch.drain(..) {
                if let Some(ttl) = inner.plain_ttl(lifetime) {
                    inner.insert_plainly_at(hash, key, value, ttl, clock);
                    continue;
                }
                let prepared = inner.prepare_at(hash, &key, &value, lifetime, clock);
                inner.insert(hash, key, value, &prepared);
            }
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Asks for the memory of many keys: first for what says where they are, then for the entries.
    /// None of it is waited for under a lock, so that all come at once.
    fn look_ahead<T>(&self, batch: &[T], hash: impl Fn(&T) -> Hashed) {
        if batch.len() < WORTH_IT {
            return;
        }
        for hash in batch.iter().map(&hash) {
            self.read(self.cell(hash))
                .store
                .prefetch_place(hash.place());
        }
        for hash in batch.iter().map(&hash) {
            self.read(self.cell(hash))
                .store
                .prefetch_entry(hash.place());
        }
    }
}
