//! A slab: 2 MiB at a multiple of 2 MiB, for which the system is asked to use one huge page.

use std::ops::Range;
use std::ptr::NonNull;

/// A huge page of the processors that most use. Where theirs are larger, the slabs lie on small
/// pages.
pub(super) const SLAB_BYTES: usize = 2 << 20;

/// Owns a slab's memory. It goes back to the system when this is dropped.
#[derive(Debug)]
pub(super) struct Slab(NonNull<u8>);

// SAFETY: it owns the memory, as a box does.
unsafe impl Send for Slab {}

impl Slab {
    /// `None` where there are no huge pages to ask for, or no memory.
    pub(super) fn new() -> Option<Self> {
        let at = map()?;
        debug_assert_eq!(at.as_ptr().addr() % SLAB_BYTES, 0);
        Some(Self(at))
    }

    pub(super) fn address(&self) -> usize {
        self.0.as_ptr().addr()
    }

    /// Returns the address so many bytes after its beginning.
    pub(super) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < SLAB_BYTES, "it lies within");
        // SAFETY: it is within the memory, as was seen just now.
        unsafe { self.0.add(offset) }
    }
}

impl Slab {
    /// From now on the system is to use a huge page, or small ones.
    pub(super) fn ask_for_huge_page(&self, wanted: bool) {
        system::advise(self.0, wanted);
    }

    /// The system may take back the small pages within these bytes. They are zeros then, or stay as
    /// they are.
    ///
    /// # Safety
    ///
    /// Nobody uses these bytes.
    pub(super) unsafe fn discard(&self, bytes: Range<usize>) {
        let page = system::page_bytes();
        let (start, end) = (bytes.start.next_multiple_of(page), bytes.end / page * page);
        if start < end && end <= SLAB_BYTES {
            // SAFETY: they are whole pages of the slab, and nobody uses them.
            unsafe { system::discard(self.at(start), end - start) }
        }
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: `map` returned it, and whoever owns the slab gives out nothing of it any more.
        unsafe { unmap(self.0) }
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::ptr::{NonNull, null_mut};

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    use super::SLAB_BYTES;

    /// Takes twice as much from the system, keeps the part that is aligned, and gives the rest
    /// back. Of two such parts it keeps the upper one: the system goes downwards, so slabs lie side
    /// by side, and are one mapping for it.
    pub(super) fn map() -> Option<NonNull<u8>> {
        let flags = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: without an address it takes the place of nothing.
        let all = unsafe { mmap_anonymous(null_mut(), 2 * SLAB_BYTES, flags.0, flags.1) }.ok()?;
        let before = SLAB_BYTES - all.addr() % SLAB_BYTES;
        // SAFETY: `before` is from 1 to SLAB_BYTES. So all three parts are within what was mapped
        // just now.
        unsafe {
            let at = all.byte_add(before);
            let _ = munmap(all, before);
            if before < SLAB_BYTES {
                let _ = munmap(at.byte_add(SLAB_BYTES), SLAB_BYTES - before);
            }
            if madvise(at, SLAB_BYTES, Advice::LinuxHugepage).is_err() {
                let _ = munmap(at, SLAB_BYTES);
                return None;
            }
            NonNull::new(at.cast())
        }
    }

    pub(super) fn advise(slab: NonNull<u8>, huge: bool) {
        let advice = if huge {
            Advice::LinuxHugepage
        } else {
            Advice::LinuxNoHugepage
        };
        // SAFETY: it changes nothing that the program sees.
        let _ = unsafe { madvise(slab.as_ptr().cast(), SLAB_BYTES, advice) };
    }

    pub(super) fn page_bytes() -> usize {
        rustix::param::page_size()
    }

    /// # Safety
    ///
    /// They are whole pages of a slab, and nobody uses them.
    pub(super) unsafe fn discard(at: NonNull<u8>, bytes: usize) {
        // SAFETY: as demanded.
        let _ = unsafe { madvise(at.as_ptr().cast(), bytes, Advice::LinuxDontNeed) };
    }

    /// # Safety
    ///
    /// [`map`] returned it, and nobody uses it any more.
    pub(super) unsafe fn unmap(at: NonNull<u8>) {
        // SAFETY: as demanded.
        let unmapped = unsafe { munmap(at.as_ptr().cast(), SLAB_BYTES) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// Miri knows of no pages, but of the allocator.
#[cfg(miri)]
mod system {
    use std::alloc::{Layout, alloc, dealloc};
    use std::ptr::NonNull;

    use super::SLAB_BYTES;

    fn layout() -> Layout {
        Layout::from_size_align(SLAB_BYTES, SLAB_BYTES).expect("both are a power of two")
    }

    pub(super) fn map() -> Option<NonNull<u8>> {
        // SAFETY: its size is not 0.
        NonNull::new(unsafe { alloc(layout()) })
    }

    pub(super) fn advise(_: NonNull<u8>, _: bool) {}

    pub(super) fn page_bytes() -> usize {
        4096
    }

    /// # Safety
    ///
    /// They are whole pages of a slab, and nobody uses them.
    pub(super) unsafe fn discard(at: NonNull<u8>, bytes: usize) {
        // SAFETY: as demanded.
        unsafe { at.write_bytes(0, bytes) }
    }

    /// # Safety
    ///
    /// [`map`] returned it, and nobody uses it any more.
    pub(super) unsafe fn unmap(at: NonNull<u8>) {
        // SAFETY: as demanded.
        unsafe { dealloc(at.as_ptr(), layout()) }
    }
}

#[cfg(not(any(target_os = "linux", miri)))]
mod system {
    use std::ptr::NonNull;

    pub(super) fn map() -> Option<NonNull<u8>> {
        None
    }

    pub(super) fn advise(_: NonNull<u8>, _: bool) {}

    pub(super) fn page_bytes() -> usize {
        super::SLAB_BYTES
    }

    /// # Safety
    ///
    /// None: there are no slabs.
    pub(super) unsafe fn discard(_: NonNull<u8>, _: usize) {}

    /// # Safety
    ///
    /// None: there are no slabs.
    pub(super) unsafe fn unmap(_: NonNull<u8>) {}
}

use system::{map, unmap};
