//! The pointers by which readers without a lock find slots: one for each page.

use std::sync::Arc;

use super::slots::Page;
use crate::shared::{Block, Purpose, Roots, Spot};

#[derive(Debug)]
pub(super) struct Spots {
    roots: Arc<Roots>,
    block: Block<Spot>,
}

impl Spots {
    pub(super) fn new(roots: &Arc<Roots>) -> Self {
        Self {
            roots: Arc::clone(roots),
            block: Block::empty(),
        }
    }

    /// Returns whether readers know that the store is being changed.
    #[inline]
    pub(super) fn are_changing(&self) -> bool {
        self.roots.is_changing()
    }

    /// Leads readers to a page as it is now. To one with attributes only the lock leads.
    pub(super) fn publish<K, V>(&self, number: u32, page: &Page<K, V>) {
        let cells = page.columns.is_none().then_some(&page.cells);
        self.block[number as usize].lead(cells);
    }

    /// Has room for this many pages. Grows by half; shrinks when three quarters are in vain.
    pub(super) fn make_room(&mut self, pages: usize) {
        let len = self.block.len();
        if pages <= len && (len < 64 || pages > len / 4) {
            return;
        }
        let block = Block::<Spot>::zeroed(pages + pages / 2, Purpose::SHARED);
        for (new, old) in block.iter().zip(self.block.iter()) {
            new.copy(old);
        }
        self.roots.lead_to_spots(&block);
        // The old one is unlinked now, and may go.
        self.block = block;
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.block)
    }
}
