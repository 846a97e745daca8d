//! What a read has found out under the reader lock, and is done once that is released.

use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use crate::core::hash::Hashed;
use crate::core::inner::Inner;
use crate::core::renew::Renewal;
use crate::stats::Count;

/// What a read leaves to be done.
pub(crate) struct AfterRead<K> {
    /// Whether it has served a value that is past its soft deadline.
    pub(crate) stale: bool,
    /// The end that the entry is to have.
    pub(crate) renewal: Option<Renewal>,
    /// The key whose refresh is to be queued.
    pub(crate) refresh: Option<K>,
    /// Whether it has found a value, if that counts as a lookup.
    pub(crate) lookup: Option<bool>,
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Does what a read has left to be done. (Inlined, it is never in memory; nearly always there
    /// is nothing.)
    #[inline(always)]
    pub(crate) fn settle<Q>(&self, hash: Hashed, key: &Q, after: AfterRead<K>)
    where
        Q: Equivalent<K> + ?Sized,
    {
        if let Some(renewal) = after.renewal {
            self.renew(hash, key, renewal);
        }
        if after.stale {
            self.counters.add(Count::Stale, 1);
        }
        if let Some(key) = after.refresh {
            self.refresh_soon(hash, key);
        }
        if let Some(found) = after.lookup {
            let count = if found { Count::Hit } else { Count::Miss };
            self.counters.add(count, 1);
        }
    }
}
