//! The guide for readers without a lock: it maps each slot of the directory to the buckets of its
//! segment.

use std::sync::Arc;

use super::Index;
use crate::shared::{Block, Roots, Ways};

#[derive(Debug)]
pub(super) struct Guide {
    roots: Arc<Roots>,
    ways: Block<Ways>,
}

impl Guide {
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.ways)
    }
}

impl Index {
    /// From now on readers without a lock may look into it. O(segments and slots of the directory).
    pub(crate) fn share(&mut self, roots: &Arc<Roots>) {
        self.defer_frees();
        self.purpose.is_shared = true;
        self.guide = Some(Guide {
            roots: Arc::clone(roots),
            ways: Block::empty(),
        });
        for segment in &mut self.segments {
            segment.buckets.share();
        }
        if !self.directory.is_empty() {
            self.publish_all();
        }
    }

    /// From now on memory is to lie on huge pages, where there are any.
    pub(crate) fn use_huge_pages(&mut self) {
        self.purpose.on_huge_page = true;
    }

    /// New memory is this index's alone. Readers have been led away.
    pub(crate) fn unshare(&mut self) {
        self.guide = None;
        self.purpose.is_shared = false;
    }

    /// Leads readers to a segment's buckets as they are now.
    #[inline]
    pub(super) fn publish(&self, number: u32) {
        if let Some(guide) = &self.guide {
            guide.roots.change(|| self.lead(&guide.ways, number));
        }
    }

    fn lead(&self, ways: &Block<Ways>, number: u32) {
        let segment = &self.segments[number as usize];
        let first = self.slot(segment.start);
        let run = 1 << (self.depth - segment.depth);
        for slot in first..first + run {
            Ways::at(ways, slot).lead(&segment.buckets, segment.start, segment.depth);
            Ways::at(ways, self.directory.len() + slot).detour(&segment.buckets);
        }
    }

    /// Leads readers to all segments: the directory has another size.
    pub(super) fn publish_all(&mut self) {
        let Some(mut guide) = self.guide.take() else {
            return;
        };
        let ways = Ways::zeroed(self.directory.len());
        for number in 0..self.segments.len() as u32 {
            self.lead(&ways, number);
        }
        guide.roots.lead_to_ways(&ways, self.depth);
        // The old ones are unlinked now, and may go.
        guide.ways = ways;
        self.guide = Some(guide);
    }
}
