//! The memory of a block: where it comes from, and that it goes back there.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::slabs;

/// Memory that nobody else frees. Dropping it gives it back.
pub(super) struct BlockMemory {
    at: NonNull<u8>,
    layout: Layout,
    is_in_slab: bool,
}

// SAFETY:
// - It is memory that nobody uses any more but readers that were pinned when it was retired.
// - Allocator and slabs take it back on any thread.
unsafe impl Send for BlockMemory {}

impl BlockMemory {
    /// Zeroed, and of a size that is not 0. On a huge page if it is to be and can be.
    pub(super) fn zeroed(layout: Layout, on_huge_page: bool) -> Self {
        assert!(layout.size() > 0, "empty blocks take no memory");
        let in_slab = if on_huge_page {
            slabs::take(layout)
        } else {
            None
        };
        if let Some(at) = in_slab {
            // It may have been another block's.
            // SAFETY: it is as large as the layout says, and nobody else has it.
            unsafe { at.write_bytes(0, layout.size()) };
            return Self {
                at,
                layout,
                is_in_slab: true,
            };
        }
        // SAFETY: its size is not 0.
        let at = unsafe { alloc_zeroed(layout) };
        let Some(at) = NonNull::new(at) else {
            handle_alloc_error(layout)
        };
        Self {
            at,
            layout,
            is_in_slab: false,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.layout.size()
    }

    /// Where it is, and whether in a slab. From now on nobody gives it back.
    pub(super) fn leak(self) -> (NonNull<u8>, bool) {
        let memory = ManuallyDrop::new(self);
        (memory.at, memory.is_in_slab)
    }

    /// Takes over what was leaked.
    ///
    /// # Safety
    ///
    /// [`leak`](Self::leak) returned both for memory of this layout. Nobody else takes it over.
    pub(super) unsafe fn leaked(at: NonNull<u8>, layout: Layout, is_in_slab: bool) -> Self {
        Self {
            at,
            layout,
            is_in_slab,
        }
    }
}

impl Drop for BlockMemory {
    fn drop(&mut self) {
        if self.is_in_slab {
            slabs::give(self.at, self.layout.size());
        } else {
            // SAFETY: `zeroed` allocated it with this layout, and whoever used it has given it up.
            unsafe { dealloc(self.at.as_ptr(), self.layout) }
        }
    }
}
