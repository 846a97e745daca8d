//! Invalidation of many entries at once: by a tag, or by a predicate.

use std::hash::{BuildHasher, Hash};

use crate::cache::Cache;

impl<K, V, S> Cache<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// Invalidates every entry that was stored with a [tag](crate::Lifetime::tag); returns whether there
    /// may have been one. O(1), however many there are: they are invisible when this returns, and the
    /// driver removes them in short holds; until then [`len`](Self::len) and [`weight`](Self::weight)
    /// count them. The listener gets them as [`RemovalCause::Invalidated`](crate::RemovalCause).
    ///
    /// An entry with the tag that another thread is about to store counts as stored before or after,
    /// never as both: once this has returned, what was handed to the cache before it was called stays
    /// invisible.
    pub fn invalidate_tag(&self, tag: &str) -> bool {
        let any = self.inner.tags.invalidate(tag);
        if any {
            self.inner.alarm.sweep_wanted();
        }
        any
    }
}
