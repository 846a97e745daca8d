//! A set of timer ids that is cleared in O(1): the ids that one pass over the records has met.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Ids a page holds.
const PAGE_IDS: u32 = 4096;

/// A set of ids in pages of 4,096 bits. Every operation is O(1), growth aside.
///
/// Clearing does not touch the pages: it begins the next *pass*. Each page says in which pass it
/// was last written. If that is an earlier pass, the page counts as empty, and its bits are reset
/// before it is written again.
#[derive(Debug)]
pub(crate) struct Marks {
    pages: Vec<Option<Page>>,
    pass: u64,
}

#[derive(Debug)]
struct Page {
    /// The pass in which it was last written.
    pass: u64,
    words: Box<[u64; PAGE_IDS as usize / 64]>,
}

impl Marks {
    /// An empty set. Allocates nothing.
    pub(crate) const fn new() -> Self {
        Self {
            pages: Vec::new(),
            pass: 0,
        }
    }

    /// Adds an id. Returns false if it was a member already.
    #[inline]
    pub(crate) fn insert(&mut self, id: u32) -> bool {
        let index = (id / PAGE_IDS) as usize;
        if index >= self.pages.len() {
            self.pages.resize_with(index + 1, || None);
        }
        let pass = self.pass;
        let page = self.pages[index].get_or_insert_with(|| Page {
            pass,
            words: Box::new([0; PAGE_IDS as usize / 64]),
        });
        if page.pass != pass {
            page.pass = pass;
            page.words.fill(0);
        }
        let word = &mut page.words[(id % PAGE_IDS / 64) as usize];
        let bit = 1 << (id % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Takes an id out, if it is a member.
    #[inline]
    pub(crate) fn remove(&mut self, id: u32) {
        if let Some(Some(page)) = self.pages.get_mut((id / PAGE_IDS) as usize) {
            page.words[(id % PAGE_IDS / 64) as usize] &= !(1 << (id % 64));
        }
    }

    /// Takes all ids out. Keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.pass += 1;
    }

    /// Takes all ids out and frees up to `pages` pages. Returns whether there are more.
    pub(crate) fn shrink(&mut self, pages: u32) -> bool {
        if self.pages.is_empty() {
            return false;
        }
        self.clear();
        self.pages
            .truncate(self.pages.len().saturating_sub(pages as usize));
        if self.pages.is_empty() {
            self.pages = Vec::new();
        }
        !self.pages.is_empty()
    }

    /// Returns whether no memory is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Heap bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let pages = self.pages.iter().flatten().count();
        self.pages.capacity() * size_of::<Option<Page>>() + pages * (PAGE_IDS as usize / 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleared_set_has_no_member_and_keeps_its_memory() {
        let mut marks = Marks::new();
        let ids = [0, 63, 64, PAGE_IDS - 1, PAGE_IDS, 5 * PAGE_IDS];
        for pass in 0..3 {
            for id in ids {
                assert!(marks.insert(id), "{id} in pass {pass}");
                assert!(!marks.insert(id), "{id} again");
            }
            marks.remove(64);
            marks.remove(7 * PAGE_IDS);
            assert!(marks.insert(64), "64 was taken out");
            let bytes = marks.bytes();
            marks.clear();
            assert_eq!(marks.bytes(), bytes);
        }
    }

    #[test]
    fn memory_is_given_back_in_steps_and_nothing_is_a_member_then() {
        let mut marks = Marks::new();
        marks.insert(1);
        marks.insert(3 * PAGE_IDS);
        assert!(marks.shrink(3), "a page is left");
        assert!(marks.insert(1), "what is left holds nothing");
        assert!(!marks.shrink(3));
        assert!(marks.is_empty());
        assert_eq!(marks.bytes(), 0);
        assert!(!marks.shrink(1));
    }
}
