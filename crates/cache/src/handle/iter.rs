//! Iteration over all entries, a few at a time.
//!
//! Weakly consistent: an entry that is there from the first step to the last is met exactly once, however
//! many others come and go meanwhile; one that comes or goes may be met or not. Shards are visited one
//! after another, and within a shard the index in the order of hashes, with the hash as the cursor, so
//! growth, moves and removals do not disturb it.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher, Hash};

use tidewheel_store::Slot;
use tidewheel_time::DefaultHashBuilder;

use super::cache::Cache;
use crate::core::shard::Shard;
use crate::lifetime::Ttl;

/// Entries that are copied in one hold of a shard's reader lock, about.
const ENTRIES_PER_HOLD: usize = 32;

/// What an iterator takes of an entry. Runs under the reader lock.
type Take<K, V, T> = fn(&Shard<K, V>, Slot, Ttl) -> T;

/// Walks all live entries.
pub(super) struct Walk<'a, K, V, S, T> {
    cache: &'a Cache<K, V, S>,
    take: Take<K, V, T>,
    shard: usize,
    cursor: u32,
    /// What was copied and not yet handed out.
    ready: VecDeque<T>,
}

impl<'a, K, V, S, T> Walk<'a, K, V, S, T> {
    pub(super) fn new(cache: &'a Cache<K, V, S>, take: Take<K, V, T>) -> Self {
        Self {
            cache,
            take,
            shard: 0,
            cursor: 0,
            ready: VecDeque::new(),
        }
    }

    pub(super) fn cache(&self) -> &'a Cache<K, V, S> {
        self.cache
    }
}

impl<K: Hash + Eq, V, S: BuildHasher, T> Walk<'_, K, V, S, T> {
    /// The next entry of those that are met.
    pub(super) fn next(&mut self, is_met: impl Fn(&Shard<K, V>, Slot) -> bool) -> Option<T> {
        let inner = &*self.cache.inner;
        while self.ready.is_empty() {
            let cell = inner.shards.get(self.shard)?;
            let (ready, take) = (&mut self.ready, self.take);
            let shard = inner.read(cell);
            let now = inner.time.now();
            let next = shard.store.scan(self.cursor, ENTRIES_PER_HOLD, |slot| {
                if is_met(&shard, slot) && inner.is_live(&shard.store, slot) {
                    let ttl = match inner.end_of(&shard.store, slot) {
                        None => Ttl::Forever,
                        Some(end) => Ttl::Left(now.until(end)),
                    };
                    ready.push_back(take(&shard, slot, ttl));
                }
            });
            match next {
                Some(next) => self.cursor = next,
                None => {
                    self.cursor = 0;
                    self.shard += 1;
                }
            }
        }
        self.ready.pop_front()
    }
}

macro_rules! iterator {
    ($(#[$doc:meta])* $name:ident, $item:ty) => {
        $(#[$doc])*
        pub struct $name<'a, K, V, S = DefaultHashBuilder>(Walk<'a, K, V, S, $item>);

        impl<K: Hash + Eq, V, S: BuildHasher> Iterator for $name<'_, K, V, S> {
            type Item = $item;

            fn next(&mut self) -> Option<$item> {
                self.0.next(|_, _| true)
            }
        }

        impl<K, V, S> fmt::Debug for $name<'_, K, V, S> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("shard", &self.0.shard)
                    .field("cursor", &self.0.cursor)
                    .finish_non_exhaustive()
            }
        }
    };
}

iterator! {
    /// Copies of all live entries; made by [`Cache::iter`].
    Iter, (K, V)
}

iterator! {
    /// Copies of all live entries with what is left of their time to live; made by [`Cache::entries`].
    Entries, (K, V, Ttl)
}

iterator! {
    /// Copies of the keys of all live entries; made by [`Cache::keys`].
    Keys, K
}

/// # Iterating
impl<K: Hash + Eq + Clone, V, S: BuildHasher> Cache<K, V, S> {
    /// Copies of all live entries, in no particular order. Does not count as a use of them.
    ///
    /// Weakly consistent: an entry that is there throughout is met exactly once; one that comes or goes
    /// meanwhile may be met or not. About 32 entries are copied in one hold of a shard's reader lock, under
    /// which `Clone` runs; it must not call this cache.
    #[doc(alias = "asMap", alias = "as_map")]
    pub fn iter(&self) -> Iter<'_, K, V, S>
    where
        V: Clone,
    {
        Iter(self.walk(|shard, slot, _| {
            (
                shard.store.key(slot).clone(),
                shard.store.value(slot).clone(),
            )
        }))
    }

    /// As [`iter`](Self::iter), with what is left of each entry's time to live.
    pub fn entries(&self) -> Entries<'_, K, V, S>
    where
        V: Clone,
    {
        Entries(self.walk(|shard, slot, ttl| {
            let (key, value) = (shard.store.key(slot), shard.store.value(slot));
            (key.clone(), value.clone(), ttl)
        }))
    }

    /// As [`iter`](Self::iter), the keys alone.
    pub fn keys(&self) -> Keys<'_, K, V, S> {
        Keys(self.walk(|shard, slot, _| shard.store.key(slot).clone()))
    }

    fn walk<T>(&self, take: Take<K, V, T>) -> Walk<'_, K, V, S, T> {
        Walk::new(self, take)
    }
}

impl<'a, K: Hash + Eq + Clone, V: Clone, S: BuildHasher> IntoIterator for &'a Cache<K, V, S> {
    type Item = (K, V);
    type IntoIter = Iter<'a, K, V, S>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
