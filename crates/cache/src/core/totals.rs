//! What a cache has counted, over all its shards.

use crate::core::inner::Inner;
use crate::stats::{Count, LATENESS_WINDOWS};

/// Sums over all shards, and what threads have counted without one.
pub(crate) struct Totals {
    counts: [u64; Count::KINDS],
    pub(crate) lateness: [u64; LATENESS_WINDOWS],
    pub(crate) entries: u64,
    pub(crate) weight: u64,
    pub(crate) negatives: u64,
}

impl Totals {
    pub(crate) fn of(&self, count: Count) -> u64 {
        self.counts[count as usize]
    }
}

impl<K, V, S> Inner<K, V, S> {
    /// Adds up what was counted. Not a point in time: shard after shard.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals {
            counts: self.counters.sums(),
            lateness: [0; LATENESS_WINDOWS],
            entries: 0,
            weight: 0,
            negatives: 0,
        };
        for cell in &self.shards {
            let shard = self.read(cell);
            shard
                .effects
                .counts
                .add_to(&mut totals.counts, &mut totals.lateness);
            totals.entries += shard.store.len() as u64;
            totals.weight += shard.store.weight();
            totals.negatives += shard.negatives.len();
        }
        totals
    }
}
