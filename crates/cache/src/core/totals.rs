//! What a cache has counted, over all its shards.

use crate::core::inner::Inner;
use crate::stats::{LATENESS_WINDOWS, Stats};

impl<K, V, S> Inner<K, V, S> {
    /// Adds up what was counted. Not a point in time: shard after shard.
    pub(crate) fn stats(&self) -> Stats {
        let mut counts = self.counters.sums();
        let mut lateness = [0; LATENESS_WINDOWS];
        let (mut entries, mut weight, mut negatives) = (0, 0, 0);
        for cell in &self.shards {
            let shard = self.read(cell);
            shard.effects.counts.add_to(&mut counts, &mut lateness);
            entries += shard.store.len() as u64;
            weight += shard.store.weight();
            negatives += shard.negatives.len();
        }
        Stats {
            refreshes_queued: self.refreshes.waiting() as u64,
            refreshes_running: self.refreshes.running() as u64,
            negatives,
            entries,
            weight,
            lateness,
            backlog: self.overdue(),
            ..Stats::counted(counts)
        }
    }
}
