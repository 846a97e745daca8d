//! The shards of each loop: shard `i` belongs to loop `i mod N`.
//!
//! With three loops and eight shards, loop 0 has the shards 0, 3 and 6, and loop 2 has 2 and 5.

/// The shards of one loop, in their order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoopShards {
    owner: usize,
    loops: usize,
    pub(crate) count: usize,
}

impl LoopShards {
    pub(crate) fn of(owner: usize, loops: usize, shards: usize) -> Self {
        let count = shards.saturating_sub(owner).div_ceil(loops);
        Self {
            owner,
            loops,
            count,
        }
    }

    /// Returns the shard at a position; positions past the end begin again.
    pub(crate) fn get(self, at: usize) -> usize {
        self.owner + (at % self.count) * self.loops
    }
}
