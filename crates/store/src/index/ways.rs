//! What readers without a lock go by: for each slot of the directory the way to its segment's buckets.

use std::sync::Arc;

use super::Index;
use crate::shared::{Block, Purpose, Roots, Way};

#[derive(Debug)]
pub(super) struct Ways {
    roots: Arc<Roots>,
    block: Block<Way>,
}

impl Ways {
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.block)
    }
}

impl Index {
    /// From now on readers without a lock may look into it. It must be empty.
    pub(crate) fn share(&mut self, roots: &Arc<Roots>) {
        debug_assert!(
            self.directory.is_empty(),
            "its memory is shared from the beginning"
        );
        self.defer_frees();
        self.purpose.is_shared = true;
        self.ways = Some(Ways {
            roots: Arc::clone(roots),
            block: Block::empty(),
        });
    }

    /// From now on memory is to lie on huge pages, where there are any.
    pub(crate) fn use_huge_pages(&mut self) {
        self.purpose.on_huge_page = true;
    }

    /// New memory is this index's alone. Readers have been led away.
    pub(crate) fn unshare(&mut self) {
        self.ways = None;
        self.purpose.is_shared = false;
    }

    /// Leads readers to a segment's buckets as they are now.
    #[inline]
    pub(super) fn publish(&self, number: u32) {
        if let Some(ways) = &self.ways {
            ways.roots.change(|| self.lead(&ways.block, number));
        }
    }

    fn lead(&self, ways: &Block<Way>, number: u32) {
        let segment = &self.segments[number as usize];
        let first = self.slot(segment.start);
        let run = 1 << (self.depth - segment.depth);
        for way in &ways[first..first + run] {
            way.lead(&segment.buckets, segment.depth);
        }
    }

    /// Leads readers to all segments: the directory has another size.
    pub(super) fn publish_all(&mut self) {
        let Some(mut ways) = self.ways.take() else {
            return;
        };
        let block = Block::zeroed(self.directory.len(), Purpose::SHARED);
        for number in 0..self.segments.len() as u32 {
            self.lead(&block, number);
        }
        ways.roots.lead_to_ways(&block, self.depth);
        // The old one is unlinked now, and may go.
        ways.block = block;
        self.ways = Some(ways);
    }
}
