//! Iteration over all entries, or over those that have a tag, a few at a time.
//!
//! Weakly consistent: an entry that is there from the first step to the last is met exactly once,
//! however many others come and go meanwhile; one that comes or goes may be met or not. Shards are
//! visited one after another, and within a shard the index in the order of hashes, with the hash as
//! the cursor, so growth, moves and removals do not disturb it.
//!
//! A scan notes the keys of some entries at a time, and looks each of them up again when its turn
//! comes. So what is handed out is what the key has at that moment, if it has anything.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher, Hash};

use tidewheel_store::Slot;
use tidewheel_time::DefaultHashBuilder;

use super::cache::Cache;
use crate::lifetime::Ttl;
use crate::shard::Shard;
use crate::shard::tags::LentTags;

/// Entries whose keys are noted in one hold of a shard's reader lock, about.
const ENTRIES_PER_HOLD: usize = 32;

/// Converts an entry into an iterator's item. Runs under the reader lock.
type Take<K, V, T> = fn(K, &V, Ttl) -> T;

/// Walks all live entries.
struct EntryScan<'a, K, V, S, T> {
    cache: &'a Cache<K, V, S>,
    take: Take<K, V, T>,
    shard: usize,
    /// The position from which the shard's keys were not noted yet; `None` at its end.
    cursor: Option<u32>,
    /// Keys of the shard that were noted and not yet looked up again.
    noted: VecDeque<K>,
}

impl<'a, K, V, S, T> EntryScan<'a, K, V, S, T> {
    fn new(cache: &'a Cache<K, V, S>, take: Take<K, V, T>) -> Self {
        Self {
            cache,
            take,
            shard: 0,
            cursor: Some(0),
            noted: VecDeque::new(),
        }
    }
}

impl<K: Hash + Eq + Clone, V, S: BuildHasher, T> EntryScan<'_, K, V, S, T> {
    /// The next entry of those that are met, as it is now.
    fn next(&mut self, is_met: impl Fn(&Shard<K, V, S>, Slot) -> bool) -> Option<T> {
        let inner = &*self.cache.inner;
        loop {
            let cell = inner.shards.get(self.shard)?;
            while let Some(key) = self.noted.pop_front() {
                let hash = inner.hash(&key);
                let (shard, now) = inner.read_now(cell);
                let Some(slot) = shard.find(hash, &key) else {
                    continue;
                };
                let ttl = shard.ttl_of(slot, now);
                if ttl != Ttl::Missing && is_met(&shard, slot) {
                    return Some((self.take)(key, shard.store.value(slot), ttl));
                }
            }
            let Some(from) = self.cursor else {
                self.shard += 1;
                self.cursor = Some(0);
                continue;
            };
            let noted = &mut self.noted;
            let (shard, now) = inner.read_now(cell);
            self.cursor = shard.store.scan(from, ENTRIES_PER_HOLD, |slot| {
                if is_met(&shard, slot) && shard.is_live(slot, now) {
                    noted.push_back(shard.store.key(slot).clone());
                }
            });
        }
    }
}

macro_rules! iterator {
    ($(#[$doc:meta])* $name:ident, $item:ty) => {
        $(#[$doc])*
        pub struct $name<'a, K, V, S = DefaultHashBuilder>(EntryScan<'a, K, V, S, $item>);

        impl<K: Hash + Eq + Clone, V, S: BuildHasher> Iterator for $name<'_, K, V, S> {
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
    /// Copies of all live entries with what is left of their time to live; made by
    /// [`Cache::entries`].
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
    /// Each `next` looks at the clock and at the entry: what it returns was there at the time of
    /// that `next`, with the value that the key had then. So an iterator that is kept for long, or
    /// is slow, hands out no entry that has died, or was removed, invalidated or replaced, before
    /// that.
    ///
    /// Weakly consistent: an entry that is there throughout is met exactly once; one that comes or
    /// goes meanwhile may be met or not. Each `next` holds a shard's reader lock for a moment, to
    /// copy one entry; once in about 32 entries it copies the keys of the next ones. `Clone`,
    /// `Hash` and `Eq` must not call this cache.
    #[doc(alias = "asMap", alias = "as_map")]
    pub fn iter(&self) -> Iter<'_, K, V, S>
    where
        V: Clone,
    {
        Iter(EntryScan::new(self, |key, value, _| (key, value.clone())))
    }

    /// As [`iter`](Self::iter), with what is left of each entry's time to live at the time of its
    /// `next`.
    pub fn entries(&self) -> Entries<'_, K, V, S>
    where
        V: Clone,
    {
        Entries(EntryScan::new(self, |key, value, ttl| {
            (key, value.clone(), ttl)
        }))
    }

    /// As [`iter`](Self::iter), the keys alone.
    pub fn keys(&self) -> Keys<'_, K, V, S> {
        Keys(EntryScan::new(self, |key, _, _| key))
    }
}

impl<'a, K: Hash + Eq + Clone, V: Clone, S: BuildHasher> IntoIterator for &'a Cache<K, V, S> {
    type Item = (K, V);
    type IntoIter = Iter<'a, K, V, S>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Entries that one hold of a shard's reader lock looks at, about.
const COUNTED_PER_HOLD: usize = 64;

/// Copies of the live entries with a tag; made by [`Cache::entries_with_tag`].
pub struct TaggedEntries<'a, K, V, S = DefaultHashBuilder> {
    scan: EntryScan<'a, K, V, S, (K, V)>,
    /// `None` when no entry has had it.
    tag: Option<LentTags<'a>>,
}

/// # By tag
///
/// Entries are stored with tags by [`Lifetime::tag`](crate::Lifetime::tag).
impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Counts the live entries that have a tag. O(entries), whatever their tags: no index by tag is
    /// kept, so that entries with tags cost no more to store and remove. Not a point in time: shard
    /// after shard.
    ///
    /// Entries with more than 32 tags are not counted: theirs are not told apart.
    #[must_use]
    pub fn count_tag(&self, tag: &str) -> u64 {
        let inner = &*self.inner;
        let Some(tag) = inner.rules.tags.lend_known(tag) else {
            return 0;
        };
        let mut count = 0;
        for cell in &inner.shards {
            let mut cursor = Some(0);
            while let Some(from) = cursor {
                let (shard, now) = inner.read_now(cell);
                cursor = shard.store.scan(from, COUNTED_PER_HOLD, |slot| {
                    let has = inner.rules.tags.has(shard.store.label_of(slot), &tag);
                    count += u64::from(has && shard.is_live(slot, now));
                });
            }
        }
        count
    }

    /// Copies of the live entries that were stored with a tag, as [`iter`](Self::iter) makes them.
    /// O(entries), whatever their tags, and without those that have more than 32: see
    /// [`count_tag`](Self::count_tag).
    pub fn entries_with_tag(&self, tag: &str) -> TaggedEntries<'_, K, V, S>
    where
        K: Clone,
        V: Clone,
    {
        TaggedEntries {
            scan: EntryScan::new(self, |key, value, _| (key, value.clone())),
            tag: self.inner.rules.tags.lend_known(tag),
        }
    }
}

impl<K: Hash + Eq + Clone, V, S: BuildHasher> Iterator for TaggedEntries<'_, K, V, S> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let tag = self.tag.as_ref()?;
        let tags = &self.scan.cache.inner.rules.tags;
        self.scan
            .next(|shard, slot| tags.has(shard.store.label_of(slot), tag))
    }
}

impl<K, V, S> fmt::Debug for TaggedEntries<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaggedEntries").finish_non_exhaustive()
    }
}
