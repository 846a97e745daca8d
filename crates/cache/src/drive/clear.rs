//! A shard is emptied: what readers do not see any more leaves before the rest, for its own cause.

use std::hash::{BuildHasher, Hash};

use crate::core::inner::Inner;
use crate::core::removal::{RECORDS_PER_HOLD, RemovalCause};
use crate::core::shard::ShardCell;

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Empties the cache.
    pub(crate) fn clear(&self) {
        for cell in &self.shards {
            self.remove_dead(cell);
            self.write(cell, |shard| self.clear_shard(shard, RemovalCause::Cleared));
        }
    }

    /// Empties the cache for good: what comes later is dropped.
    pub(crate) fn close_shards(&self) {
        for cell in &self.shards {
            self.remove_dead(cell);
            self.write(cell, |shard| {
                shard.closed = true;
                self.clear_shard(shard, RemovalCause::Closed);
            });
        }
    }

    /// Removes what readers do not see any more of a shard that is about to be emptied, in short holds: it
    /// has left before the rest, for a cause of its own.
    fn remove_dead(&self, cell: &ShardCell<K, V>) {
        let now = self.time.now().tick();
        while cell.next_deadline.get() <= now {
            let progress = self.hold(cell, |shard| self.expire_some(shard, now, RECORDS_PER_HOLD));
            if !progress.backlog {
                break;
            }
        }
        self.sweep_shard(cell);
    }
}
