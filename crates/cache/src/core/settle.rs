//! The work that a read found under the reader lock and does after releasing it.

use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use crate::core::inner::Inner;
use crate::shard::hash::Hashed;
use crate::shard::renew::Renewal;
use crate::stats::Count;

/// The work that a read leaves to do.
pub(crate) struct AfterRead<K> {
    /// True if the read served a value that is past its soft deadline.
    pub(crate) stale: bool,
    /// The end that the entry is to have.
    pub(crate) renewal: Option<Renewal>,
    /// The key whose refresh is to be queued.
    pub(crate) refresh: Option<K>,
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
    }
}
