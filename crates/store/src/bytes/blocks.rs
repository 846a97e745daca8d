//! Variable-size blocks in pages of one size class each.
//!
//! An example: an entry of 61 bytes needs a block of 64. A page of 16 KiB has room for 256 blocks
//! of this size, and for no others. If it is block 3 of page 7, its id is (7, 24): the page, and
//! the offset on it in units of eight bytes. So an id leads to the bytes without a table.
//!
//! A block above 4 KiB has a page of its own. The first byte of a block is not 0 while the block is
//! in use. A free block has the offset of the next free one in its bytes 2 and 3.
//!
//! The first page of a class begins with 256 bytes, and grows as blocks are used, by a quarter at a
//! time, up to 16 KiB. The next ones begin larger, and from the ninth on they have 16 KiB at once.
//! An id stays right, since it is a page and an offset. So a store of 200 entries does not hold 16
//! KiB for each size.
//!
//! A page without live blocks is freed at once. The other pages with free blocks are in lists by
//! how full they are. New blocks go to the fullest page, and [`sparse_page`](Blocks::sparse_page)
//! names a page that is worth emptying.

use crate::prefetch::prefetch;

/// Bytes of a page that has grown.
const PAGE: usize = 16 * 1024;

/// Bytes with which a class's first page begins.
const SMALL_PAGE: usize = 256;

/// Bytes of the unit in which blocks are measured and placed.
pub(crate) const UNIT: usize = 8;

/// Bytes of a cache line.
const CACHE_LINE: usize = 64;

/// Bits of an id that hold the offset.
const OFFSET_BITS: u32 = 11;

/// Largest block that shares a page: four fit.
const SHARED_MAX: usize = 4096;

/// Size classes of shared pages.
const CLASSES: usize = 36;

/// The class of blocks that have a page of their own.
const OWN: u8 = u8::MAX;

/// No page, no block.
const NIL: u32 = u32::MAX;
const NIL_OFFSET: u16 = u16::MAX;

/// The quarters by which the fill of a page is counted; full pages are in no list.
const QUARTERS: usize = 4;

/// Block size of each class in units: steps of one unit up to 128 bytes, then four steps to twice
/// the size.
const SIZES: [u16; CLASSES] = sizes();

const fn sizes() -> [u16; CLASSES] {
    let mut sizes = [0; CLASSES];
    let mut class = 0;
    let mut size = 1u16;
    while class < CLASSES {
        sizes[class] = size;
        size += if size < 16 {
            1
        } else {
            (1 << size.ilog2()) / 4
        };
        class += 1;
    }
    assert!(sizes[CLASSES - 1] as usize * UNIT >= SHARED_MAX);
    sizes
}

fn class_of(bytes: usize) -> usize {
    let units = bytes.div_ceil(UNIT).max(1);
    if units <= 16 {
        return units - 1;
    }
    // Above 16 units there are four classes to twice the size.
    let octave = (units - 1).ilog2();
    let step = (1usize << octave) / 4;
    let within = (units - 1 - (1 << octave)) / step;
    16 + (octave as usize - 4) * 4 + within
}

#[derive(Debug)]
struct Page {
    data: Box<[u8]>,
    /// Links of the list that the page is in.
    previous: u32,
    next: u32,
    class: u8,
    /// The list, or `QUARTERS` for none.
    quarter: u8,
    live: u16,
    /// First free block, in units.
    free: u16,
    /// Where the never-used part begins, in units.
    fresh: u16,
}

impl Page {
    /// Makes room for the used part; returns by how many bytes.
    #[cold]
    fn grow(&mut self) -> usize {
        let old = self.data.len();
        let mut new = old;
        while new < self.fresh as usize * UNIT {
            // Four steps a doubling, as the usual allocators' size classes.
            new += (1 << new.ilog2()) / 4;
        }
        let mut data = std::mem::take(&mut self.data).into_vec();
        data.reserve_exact(new - old);
        data.resize(new, 0);
        self.data = data.into_boxed_slice();
        new - old
    }
}

/// Blocks of one store.
#[derive(Debug)]
pub(crate) struct Blocks {
    pages: Vec<Page>,
    /// Numbers of pages that hold nothing.
    holes: Vec<u32>,
    lists: [[u32; QUARTERS]; CLASSES],
    /// Bytes of live blocks, per class and in all.
    class_live: [u32; CLASSES],
    class_pages: [u32; CLASSES],
    live_bytes: usize,
    held_bytes: usize,
    /// The page being emptied: no new block goes there.
    retired: u32,
}

impl Blocks {
    pub(crate) fn new() -> Self {
        // Page 0 never exists, so that no id is 0.
        let nothing = Page {
            data: Box::default(),
            previous: NIL,
            next: NIL,
            class: OWN,
            quarter: QUARTERS as u8,
            live: 0,
            free: NIL_OFFSET,
            fresh: 0,
        };
        Self {
            pages: vec![nothing],
            holes: Vec::new(),
            lists: [[NIL; QUARTERS]; CLASSES],
            class_live: [0; CLASSES],
            class_pages: [0; CLASSES],
            live_bytes: 0,
            held_bytes: 0,
            retired: NIL,
        }
    }

    /// Bytes of the blocks in use.
    pub(crate) fn live_bytes(&self) -> usize {
        self.live_bytes
    }

    /// Heap bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes + self.pages.capacity() * size_of::<Page>()
    }

    /// Bytes that a block of at least `bytes` takes with its part of what its page cannot use.
    pub(crate) fn share(bytes: usize) -> usize {
        let block = Self::rounded(bytes);
        if bytes > SHARED_MAX {
            return block;
        }
        PAGE / (PAGE / block)
    }

    /// Bytes that a block of at least `bytes` takes.
    pub(crate) fn rounded(bytes: usize) -> usize {
        if bytes > SHARED_MAX {
            bytes.next_multiple_of(UNIT)
        } else {
            SIZES[class_of(bytes)] as usize * UNIT
        }
    }

    fn size(page: &Page) -> usize {
        if page.class == OWN {
            page.data.len()
        } else {
            SIZES[page.class as usize] as usize * UNIT
        }
    }

    /// Adds a block of at least `bytes` bytes. Its content is not defined. The caller must set the
    /// first byte to something other than 0.
    ///
    /// # Panics
    ///
    /// When 2^21 pages (32 GiB) are in use.
    pub(crate) fn allocate(&mut self, bytes: usize) -> u32 {
        if bytes > SHARED_MAX {
            return self.add_page(OWN, bytes.next_multiple_of(UNIT)) << OFFSET_BITS;
        }
        let class = class_of(bytes);
        let units = SIZES[class];
        let number = match self.lists[class].iter().rev().find(|head| **head != NIL) {
            Some(&number) => number,
            None => self.add_page(class as u8, self.first_bytes(class)),
        };
        let page = &mut self.pages[number as usize];
        let offset = if page.free != NIL_OFFSET {
            let offset = page.free;
            let at = offset as usize * UNIT;
            page.free = u16::from_le_bytes([page.data[at + 2], page.data[at + 3]]);
            offset
        } else {
            let offset = page.fresh;
            page.fresh += units;
            if page.fresh as usize * UNIT > page.data.len() {
                self.held_bytes += page.grow();
            }
            offset
        };
        page.live += 1;
        self.class_live[class] += 1;
        self.live_bytes += units as usize * UNIT;
        self.list(number);
        number << OFFSET_BITS | u32::from(offset)
    }

    /// Returns the size with which the next page of a class begins: an eighth of what its pages
    /// hold, so that no more than that is vacant.
    fn first_bytes(&self, class: usize) -> usize {
        (self.class_pages[class] as usize * PAGE / 8).clamp(SMALL_PAGE, PAGE)
    }

    /// Asks for the first two cache lines of a block, and does not wait for them.
    #[inline]
    pub(crate) fn prefetch(&self, id: u32) {
        let Some(page) = self.pages.get((id >> OFFSET_BITS) as usize) else {
            return;
        };
        let at = (id & ((1 << OFFSET_BITS) - 1)) as usize * UNIT;
        for line in [at, at + CACHE_LINE - 1] {
            page.data.get(line).into_iter().for_each(prefetch);
        }
    }

    /// Frees a block; frees its page with it if it was the last.
    pub(crate) fn release(&mut self, id: u32) {
        let number = id >> OFFSET_BITS;
        let page = &mut self.pages[number as usize];
        let size = Self::size(page);
        self.live_bytes -= size;
        page.live -= 1;
        if page.class != OWN {
            self.class_live[page.class as usize] -= 1;
        }
        if page.live == 0 {
            self.drop_page(number);
            return;
        }
        let offset = (id & ((1 << OFFSET_BITS) - 1)) as u16;
        let at = offset as usize * UNIT;
        page.data[at] = 0;
        page.data[at + 2..at + 4].copy_from_slice(&page.free.to_le_bytes());
        page.free = offset;
        self.list(number);
    }

    /// The block's bytes, and those that follow on its page: for reading an entry, which knows its
    /// own end.
    #[inline]
    pub(crate) fn start(&self, id: u32) -> &[u8] {
        let page = &self.pages[(id >> OFFSET_BITS) as usize];
        &page.data[(id & ((1 << OFFSET_BITS) - 1)) as usize * UNIT..]
    }

    /// As [`start`](Self::start), for changes within the entry.
    #[inline]
    pub(crate) fn start_mut(&mut self, id: u32) -> &mut [u8] {
        let page = &mut self.pages[(id >> OFFSET_BITS) as usize];
        &mut page.data[(id & ((1 << OFFSET_BITS) - 1)) as usize * UNIT..]
    }

    /// The block's bytes, its slack included.
    #[inline]
    pub(crate) fn block(&self, id: u32) -> &[u8] {
        let page = &self.pages[(id >> OFFSET_BITS) as usize];
        let at = (id & ((1 << OFFSET_BITS) - 1)) as usize * UNIT;
        if page.class == OWN {
            return &page.data;
        }
        &page.data[at..at + SIZES[page.class as usize] as usize * UNIT]
    }

    #[inline]
    pub(crate) fn block_mut(&mut self, id: u32) -> &mut [u8] {
        let page = &mut self.pages[(id >> OFFSET_BITS) as usize];
        let at = (id & ((1 << OFFSET_BITS) - 1)) as usize * UNIT;
        if page.class == OWN {
            return &mut page.data;
        }
        &mut page.data[at..at + SIZES[page.class as usize] as usize * UNIT]
    }

    /// The block's bytes if `id` names a block in use: for ids that may be out of date.
    #[inline]
    pub(crate) fn check(&self, id: u32) -> Option<&[u8]> {
        let page = self.pages.get((id >> OFFSET_BITS) as usize)?;
        let offset = id & ((1 << OFFSET_BITS) - 1);
        let block = if page.class == OWN {
            if offset != 0 {
                return None;
            }
            &page.data[..]
        } else {
            // The page may have been freed since and hold blocks of another size now.
            let units = u32::from(SIZES[page.class as usize]);
            if offset % units != 0 {
                return None;
            }
            let at = offset as usize * UNIT;
            page.data.get(at..at + units as usize * UNIT)?
        };
        (*block.first()? != 0).then_some(block)
    }

    /// A page that is worth emptying; `None` while the pages of each size are at least three
    /// quarters full on average. No new block goes to that page until the next call.
    pub(crate) fn sparse_page(&mut self) -> Option<u32> {
        self.unretire();
        for (class, &units) in SIZES.iter().enumerate() {
            let per_page = (PAGE / UNIT) as u32 / u32::from(units);
            let places = u64::from(self.class_pages[class]) * u64::from(per_page);
            let free = places - u64::from(self.class_live[class]);
            if free * 4 <= places || free < 2 * u64::from(per_page) {
                continue;
            }
            // If a quarter is free, nearly always one page is less than half full.
            if let Some(&number) = self.lists[class][..2].iter().find(|head| **head != NIL) {
                self.unlist(number);
                self.retired = number;
                return Some(number);
            }
        }
        None
    }

    /// Returns the page that [`sparse_page`](Self::sparse_page) has handed out, if it is not empty
    /// yet.
    pub(crate) fn retired(&self) -> Option<u32> {
        (self.retired != NIL).then_some(self.retired)
    }

    fn unretire(&mut self) {
        if self.retired != NIL {
            let number = std::mem::replace(&mut self.retired, NIL);
            self.list(number);
        }
    }

    /// The id of the first block in use on a page, from offset `from` on.
    pub(crate) fn live_on(&self, number: u32, from: u32) -> Option<u32> {
        let page = &self.pages[number as usize];
        if page.class == OWN {
            return None;
        }
        let units = u32::from(SIZES[page.class as usize]);
        (from.next_multiple_of(units)..u32::from(page.fresh))
            .step_by(units as usize)
            .find(|offset| page.data[*offset as usize * UNIT] != 0)
            .map(|offset| number << OFFSET_BITS | offset)
    }

    /// Where on its page a block begins, in units.
    pub(crate) fn offset(id: u32) -> u32 {
        id & ((1 << OFFSET_BITS) - 1)
    }

    #[cold]
    fn add_page(&mut self, class: u8, bytes: usize) -> u32 {
        let own = class == OWN;
        let page = Page {
            data: vec![0; bytes].into_boxed_slice(),
            previous: NIL,
            next: NIL,
            class,
            quarter: QUARTERS as u8,
            live: u16::from(own),
            free: NIL_OFFSET,
            fresh: if own {
                (bytes / UNIT).min(u16::MAX as usize - 1) as u16
            } else {
                0
            },
        };
        self.held_bytes += bytes;
        if own {
            self.live_bytes += bytes;
        } else {
            self.class_pages[class as usize] += 1;
        }
        let number = if let Some(number) = self.holes.pop() {
            self.pages[number as usize] = page;
            number
        } else {
            let number = self.pages.len() as u32;
            assert!(
                number < 1 << (32 - OFFSET_BITS),
                "a shard holds at most 32 GiB of blocks"
            );
            self.pages.push(page);
            number
        };
        if !own {
            self.list(number);
        }
        number
    }

    fn drop_page(&mut self, number: u32) {
        self.unlist(number);
        if self.retired == number {
            self.retired = NIL;
        }
        let page = &mut self.pages[number as usize];
        self.held_bytes -= page.data.len();
        if page.class != OWN {
            self.class_pages[page.class as usize] -= 1;
        }
        page.data = Box::default();
        page.class = OWN;
        page.fresh = 0;
        page.free = NIL_OFFSET;
        self.holes.push(number);
        // Freed pages keep their rows of the table until the store is empty: 1/400 of the memory at
        // its peak.
        if self.held_bytes == 0 {
            *self = Self::new();
        }
    }

    /// Puts a page into the list that it belongs to now.
    #[inline]
    fn list(&mut self, number: u32) {
        let page = &self.pages[number as usize];
        let places = (PAGE / UNIT) as u16 / SIZES[page.class as usize];
        let quarter = (page.live as usize * QUARTERS / places as usize).min(QUARTERS);
        if page.quarter as usize != quarter && self.retired != number {
            self.relist(number, quarter);
        }
    }

    #[cold]
    fn relist(&mut self, number: u32, quarter: usize) {
        let class = self.pages[number as usize].class as usize;
        self.unlist(number);
        self.pages[number as usize].quarter = quarter as u8;
        if quarter < QUARTERS {
            let head = std::mem::replace(&mut self.lists[class][quarter], number);
            self.pages[number as usize].next = head;
            self.pages[number as usize].previous = NIL;
            if head != NIL {
                self.pages[head as usize].previous = number;
            }
        }
    }

    fn unlist(&mut self, number: u32) {
        let Page {
            previous,
            next,
            class,
            quarter,
            ..
        } = self.pages[number as usize];
        if quarter as usize == QUARTERS {
            return;
        }
        if previous == NIL {
            self.lists[class as usize][quarter as usize] = next;
        } else {
            self.pages[previous as usize].next = next;
        }
        if next != NIL {
            self.pages[next as usize].previous = previous;
        }
        self.pages[number as usize].quarter = QUARTERS as u8;
    }

    /// Panics if the structure is broken. O(pages + blocks).
    pub(crate) fn validate(&self) {
        let mut live_bytes = 0;
        let held: usize = self.pages.iter().map(|page| page.data.len()).sum();
        assert_eq!(held, self.held_bytes, "held bytes");
        for (number, page) in self.pages.iter().enumerate().skip(1) {
            if page.data.is_empty() {
                continue;
            }
            if page.class == OWN {
                live_bytes += page.data.len();
                continue;
            }
            let units = SIZES[page.class as usize] as usize;
            assert!(
                page.fresh as usize * UNIT <= page.data.len() && page.data.len() <= PAGE,
                "page {number} has grown too little or too much"
            );
            let used = (0..page.fresh as usize)
                .step_by(units)
                .filter(|offset| page.data[offset * UNIT] != 0)
                .count();
            assert_eq!(used, page.live as usize, "live blocks of page {number}");
            live_bytes += used * units * UNIT;
        }
        assert_eq!(live_bytes, self.live_bytes, "live bytes");
    }
}
