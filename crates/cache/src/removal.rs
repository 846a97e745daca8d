//! Why an entry has left, and what the listener gets of it.

use std::time::Duration;

/// Why an entry is no longer in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RemovalCause {
    /// Its time was over.
    Expired,
    /// Room was needed, or it was heavier than the whole capacity. (Entries that are over, and are
    /// only kept for [`stale_on_error`](crate::Builder::stale_on_error), may be evicted too.)
    Evicted,
    /// A new value took its place.
    Replaced,
    /// The caller removed it by its key.
    Removed,
    /// The caller invalidated it by a predicate or a tag: by a tag, also if its time was over, room
    /// was needed, or the cache was emptied or closed before it was removed.
    Invalidated,
    /// The caller emptied the cache. (Also for what was over and still kept for
    /// [`stale_on_error`](crate::Builder::stale_on_error).)
    Cleared,
    /// The cache was closed. (Also for the same.)
    Closed,
}

impl RemovalCause {
    /// Returns whether the cache itself removed the entry, and no caller did.
    #[doc(alias = "was_evicted")]
    #[must_use]
    pub fn is_automatic(self) -> bool {
        matches!(self, Self::Expired | Self::Evicted)
    }
}

/// An entry that has left the cache, as the listener gets it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Removal<K, V> {
    /// Its key.
    pub key: K,
    /// Its value.
    pub value: V,
    /// Why.
    pub cause: RemovalCause,
    /// The time between its deadline and its removal, in whole milliseconds; for expired entries
    /// only.
    pub lateness: Option<Duration>,
}
