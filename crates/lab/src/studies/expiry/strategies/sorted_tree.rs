//! A B-tree of (deadline, entry): what is due lies in front.
//!
//! A deadline that is set, moved or forgotten costs O(log n), with a walk down the tree that misses
//! the cache once a level when there are millions. It is exact, never holds anything stale and
//! knows its next deadline. Memory is 16 bytes an entry and the slack of the nodes. nginx keeps its
//! timers in a tree of that kind, as Linux does those of high resolution.

use std::collections::BTreeSet;

use tidewheel_timer::Timer;

use super::{Entries, Expiry, Left};

/// Bytes of a leaf with room for 11 pairs: the pairs, the parent, two lengths.
const LEAF_BYTES: usize = 11 * size_of::<(u64, u32)>() + 16;
/// Pairs that a leaf holds on average after splits at half.
const LEAF_FILL: usize = 7;

/// Deadlines in order.
#[derive(Debug, Default)]
pub(super) struct SortedTree {
    order: BTreeSet<(u64, u32)>,
}

impl<E: Entries> Expiry<E> for SortedTree {
    fn insert(&mut self, _: &mut E, id: u32, deadline_ms: u64, _: u64) {
        self.order.insert((deadline_ms, id));
    }

    fn cancel(&mut self, _: &mut E, id: u32, old: Timer) {
        self.order.remove(&(old.deadline, id));
    }

    fn advance(&mut self, entries: &mut E, now_ms: u64, budget: u32, due: &mut Vec<u32>) -> Left {
        for _ in 0..budget {
            let Some(first) = self.order.first().filter(|first| first.0 <= now_ms) else {
                return Left::Nothing;
            };
            let id = first.1;
            self.order.pop_first();
            entries.clear(id);
            due.push(id);
        }
        let more = self.order.first().is_some_and(|first| first.0 <= now_ms);
        Left::backlog(more)
    }

    fn wake(&self) -> Option<u64> {
        self.order.first().map(|first| first.0)
    }

    /// An estimate: a tree does not tell of its nodes.
    fn bytes(&self) -> usize {
        self.order.len().div_ceil(LEAF_FILL) * LEAF_BYTES
    }
}
