//! An array that never moves, and whose memory waits for its readers.

use std::alloc::Layout;
use std::fmt;
use std::marker::PhantomData;
use std::mem::needs_drop;
use std::ops::Deref;
use std::ptr::NonNull;

use super::limbo;
use super::memory::BlockMemory;

/// Types for which zeroed memory is a value.
///
/// # Safety
///
/// It is.
pub(crate) unsafe trait Zeroed {}

/// The purpose of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purpose {
    /// Threads without a lock may be reading it.
    pub(crate) is_shared: bool,
    /// It is to lie on a huge page, if there are any and its size suits.
    pub(crate) on_huge_page: bool,
}

impl Purpose {
    /// For whoever has it.
    pub(crate) const OWN: Self = Self {
        is_shared: false,
        on_huge_page: false,
    };

    /// For readers without a lock.
    pub(crate) const SHARED: Self = Self {
        is_shared: true,
        on_huge_page: false,
    };
}

/// A fixed number of values, zeroed at first. They are changed through shared references, so they
/// consist of atomics or look after themselves. Dropping it drops none of them.
pub(crate) struct Block<T> {
    at: NonNull<T>,
    len: u32,
    /// True if threads without a lock may be reading it.
    is_shared: bool,
    is_in_slab: bool,
    values: PhantomData<T>,
}

// SAFETY: it owns its values, as a boxed slice does.
unsafe impl<T: Send> Send for Block<T> {}
// SAFETY: it gives out shared references only, as a boxed slice does.
unsafe impl<T: Sync> Sync for Block<T> {}

impl<T: Zeroed> Block<T> {
    pub(crate) fn zeroed(len: usize, purpose: Purpose) -> Self {
        const { assert!(!needs_drop::<T>() && size_of::<T>() > 0) };
        let count = u32::try_from(len).expect("blocks are short");
        if len == 0 {
            return Self::empty();
        }
        let layout = Layout::array::<T>(len).expect("blocks are short");
        let (at, is_in_slab) = BlockMemory::zeroed(layout, purpose.on_huge_page).leak();
        Self {
            at: at.cast(),
            len: count,
            is_shared: purpose.is_shared,
            is_in_slab,
            values: PhantomData,
        }
    }
}

impl<T> Block<T> {
    /// Takes no memory.
    pub(crate) const fn empty() -> Self {
        Self {
            at: NonNull::dangling(),
            len: 0,
            is_shared: false,
            is_in_slab: false,
            values: PhantomData,
        }
    }

    /// Returns whether threads without a lock may be reading it.
    #[inline(always)]
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// From now on threads without a lock may be led to it.
    pub(crate) fn share(&mut self) {
        self.is_shared = true;
    }

    /// Where it begins, for readers; null if it is empty.
    pub(super) fn start(&self) -> *mut T {
        if self.len == 0 {
            return std::ptr::null_mut();
        }
        self.at.as_ptr()
    }
}

impl<T> Deref for Block<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY:
        // - The memory holds `len` values: zeroed memory is one, by `Zeroed`.
        // - It lives as long as `self`. Nobody has exclusive references to it.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len as usize) }
    }
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        if self.len == 0 {
            return;
        }
        let layout = Layout::array::<T>(self.len as usize).expect("it was allocated with this");
        // SAFETY: `zeroed` leaked it with this layout.
        let memory = unsafe { BlockMemory::leaked(self.at.cast(), layout, self.is_in_slab) };
        if self.is_shared {
            // SAFETY: Whoever links shared blocks unlinks them before they are dropped: `Roots`
            // says how.
            unsafe { limbo::retire(memory) }
        }
    }
}

impl<T> fmt::Debug for Block<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("len", &self.len).finish()
    }
}
