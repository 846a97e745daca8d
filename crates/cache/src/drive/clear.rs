//! Empties shards. Entries that readers no longer see leave first, for their own cause.

use std::hash::{BuildHasher, Hash};
use std::mem::needs_drop;

use crate::cell::ShardCell;
use crate::core::inner::Inner;
use crate::drive::turns::yield_now;
use crate::removal::RemovalCause;
use crate::shard::emptied::Emptied;
use crate::shard::garbage::RECORDS_PER_HOLD;

/// Entries that are dropped in one turn, when a cache that shares its driver is closed.
const DROPS_PER_TURN: usize = 16;

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Empties the cache.
    pub(crate) fn clear(&self) {
        for cell in &self.shards {
            self.remove_dead(cell);
            self.change(cell, |shard, _| {
                shard.clear(&self.rules, RemovalCause::Cleared);
            });
        }
    }

    /// Empties the cache for good: what comes later is dropped.
    pub(crate) fn close_shards(&self) {
        for cell in &self.shards {
            self.remove_dead(cell);
            if let Some(entries) = self.close_shard(cell) {
                entries.discard(&self.counters);
            }
        }
        self.requests.emptied();
    }

    /// As [`close_shards`](Self::close_shards), in turns: other caches of the same driver wait for
    /// a few entries at a time.
    pub(crate) async fn close_shards_in_turns(&self) {
        for cell in &self.shards {
            while self.remove_due_of(cell) {
                yield_now().await;
            }
            let mut slots = Some(u32::MAX);
            while let Some(before) = slots {
                slots = self.sweep_some(cell, before);
                yield_now().await;
            }
            let Some(mut entries) = self.close_shard(cell) else {
                continue;
            };
            while let Some((key, value)) = entries.next() {
                self.counters.discard_pair(key, value);
                let some = std::iter::from_fn(|| entries.next());
                self.counters.discard_pairs(some.take(DROPS_PER_TURN - 1));
                yield_now().await;
            }
        }
        self.requests.emptied();
    }

    /// Empties a shard for good; its entries, if no listener is to get them and somebody drops
    /// them.
    fn close_shard(&self, cell: &ShardCell<K, V>) -> Option<Emptied<K, V>> {
        let store = self.hold(cell, |shard| {
            shard.closed = true;
            shard.clear(&self.rules, RemovalCause::Closed);
            shard.effects.garbage.take_store()
        })?;
        self.release_tags(&*store);
        needs_drop::<(K, V)>().then_some(store)
    }

    /// Removes what readers do not see any more of a shard that is about to be emptied, in short
    /// holds: it has left before the rest, for a cause of its own.
    fn remove_dead(&self, cell: &ShardCell<K, V>) {
        while self.remove_due_of(cell) {}
        self.sweep_shard(cell);
    }

    /// Removes some of what is due in one short hold; whether there is more.
    fn remove_due_of(&self, cell: &ShardCell<K, V>) -> bool {
        let now = self.time.now().tick();
        cell.next_deadline.get() <= now
            && self
                .hold(cell, |shard| {
                    shard.expire(&self.rules, now, RECORDS_PER_HOLD)
                })
                .backlog
    }
}
