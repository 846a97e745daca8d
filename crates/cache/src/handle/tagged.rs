//! Iterates over the entries that have a tag, and counts them.

use std::fmt;
use std::hash::{BuildHasher, Hash};

use tidewheel_time::DefaultHashBuilder;

use super::cache::Cache;
use super::iter::EntryScan;
use crate::shard::tags::LentTags;

/// Entries that one hold of a shard's reader lock looks at, about.
const ENTRIES_PER_HOLD: usize = 64;

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
                cursor = shard.store.scan(from, ENTRIES_PER_HOLD, |slot| {
                    let has = inner.rules.tags.has(shard.store.label_of(slot), &tag);
                    count += u64::from(has && shard.is_live(&inner.rules, slot, now));
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
        let tags = &self.scan.cache().inner.rules.tags;
        self.scan
            .next(|shard, slot| tags.has(shard.store.label_of(slot), tag))
    }
}

impl<K, V, S> fmt::Debug for TaggedEntries<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaggedEntries").finish_non_exhaustive()
    }
}
