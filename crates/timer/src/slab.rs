//! The slab under a [`TimerSet`](crate::TimerSet): where its timers are kept, and their names.
//!
//! A timer takes nine bytes: the queue's registration, the low 32 bits of its deadline, and a
//! generation. Deadlines lie within 2^31 ticks of the queue's position, which tells the other bits;
//! those that do not (25 days ahead at one tick a millisecond) keep their full value in a side map.
//!
//! Cells live in pages; a page that becomes empty goes back to the allocator. The generations of its
//! cells go with it, so a page has one of its own, the epoch.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::bitset::BitSet;
use crate::queue::{Timer, Timers};

/// Names a timer of a [`TimerSet`](crate::TimerSet). A name outlives its timer harmlessly: it is
/// refused, unless its place has been reused a multiple of 256 times since, or the memory around it
/// given back a multiple of 65,536 times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerId {
    index: u32,
    epoch: u16,
    generation: u8,
}

impl TimerId {
    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.index
    }
}

/// Cells a page holds: large, so that the table of pages stays in the first-level cache.
const PAGE: u32 = 8192;

/// Low bits that mark a cell without a timer.
const FREE: u32 = u32::MAX;

/// Low bits that mark a deadline that is kept in the side map.
const FAR: u32 = u32::MAX - 1;

/// Released cells that wait to be counted.
const RELEASED: usize = 64;

/// "No free cell".
const NONE: u16 = u16::MAX;

/// Registration (or next free cell), low bits of the deadline, generation.
#[derive(Debug, Clone, Copy)]
struct Cell([u8; 9]);

impl Cell {
    #[inline]
    fn registration(&self) -> u32 {
        u32::from_le_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }

    #[inline]
    fn set_registration(&mut self, registration: u32) {
        self.0[..4].copy_from_slice(&registration.to_le_bytes());
    }

    #[inline]
    fn low(&self) -> u32 {
        u32::from_le_bytes([self.0[4], self.0[5], self.0[6], self.0[7]])
    }

    #[inline]
    fn set_low(&mut self, low: u32) {
        self.0[4..8].copy_from_slice(&low.to_le_bytes());
    }

    #[inline]
    fn generation(&self) -> u8 {
        self.0[8]
    }
}

#[derive(Debug)]
struct Page {
    /// Empty while the page has no memory.
    cells: Box<[Cell]>,
    /// Head of the free cells, linked through their registration.
    free: u16,
    used: u16,
    epoch: u16,
}

#[derive(Debug)]
pub(crate) struct Slab {
    pages: Vec<Page>,
    /// The page that cells are taken from; it stays when it is empty.
    hot: u32,
    /// Pages with memory and a free cell.
    open: BitSet,
    /// Pages without memory.
    holes: BitSet,
    live_pages: usize,
    /// The latest cells to be released. Their pages learn of it in batches: reading and writing a page's
    /// counters at every release makes the processor wait for the misses of the one before.
    released: [u32; RELEASED],
    released_len: usize,
    len: usize,
    /// The queue's position, from which the low bits of a deadline are completed.
    base: u64,
    far: BTreeMap<u32, u64>,
}

impl Slab {
    pub(crate) fn new(base: u64) -> Self {
        Self {
            pages: Vec::new(),
            hot: 0,
            open: BitSet::new(),
            holes: BitSet::new(),
            live_pages: 0,
            released: [0; RELEASED],
            released_len: 0,
            len: 0,
            base,
            far: BTreeMap::new(),
        }
    }

    /// Timers that are pending.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn set_base(&mut self, base: u64) {
        self.base = base;
    }

    /// The name of the timer at `index`.
    #[inline]
    pub(crate) fn id(&self, index: u32) -> TimerId {
        TimerId {
            index,
            epoch: self.pages[(index / PAGE) as usize].epoch,
            generation: self.cell(index).generation(),
        }
    }

    /// The timer of that name, if it is still pending.
    #[inline]
    pub(crate) fn find(&self, id: TimerId) -> Option<Timer> {
        let page = self.pages.get((id.index / PAGE) as usize)?;
        let cell = page.cells.get((id.index % PAGE) as usize)?;
        if page.epoch != id.epoch || cell.generation() != id.generation {
            return None;
        }
        self.complete(id.index, cell)
    }

    #[inline]
    pub(crate) fn allocate(&mut self) -> u32 {
        self.len += 1;
        if self.released_len > 0 {
            self.released_len -= 1;
            return self.released[self.released_len];
        }
        if self
            .pages
            .get(self.hot as usize)
            .is_none_or(|page| page.free == NONE)
        {
            self.hot = self.open.first().unwrap_or_else(|| self.add_page());
        }
        let page = &mut self.pages[self.hot as usize];
        let at = page.free;
        page.free = page.cells[usize::from(at)].registration() as u16;
        page.used += 1;
        if page.free == NONE {
            self.open.remove(self.hot);
        }
        self.hot * PAGE + u32::from(at)
    }

    #[inline]
    pub(crate) fn release(&mut self, index: u32) {
        let cell = self.cell_mut(index);
        let was_far = cell.low() == FAR;
        cell.set_low(FREE);
        cell.0[8] = cell.0[8].wrapping_add(1);
        if was_far {
            self.far.remove(&index);
        }
        self.len -= 1;
        if self.released_len == RELEASED {
            self.settle();
        }
        self.released[self.released_len] = index;
        self.released_len += 1;
    }

    /// Gives the released cells back to their pages, and the pages that are empty then to the allocator.
    #[inline(never)]
    pub(crate) fn settle(&mut self) {
        for &index in &self.released[..self.released_len] {
            let number = index / PAGE;
            let page = &mut self.pages[number as usize];
            page.cells[(index % PAGE) as usize].set_registration(u32::from(page.free));
            if page.free == NONE {
                self.open.insert(number);
            }
            page.free = (index % PAGE) as u16;
            page.used -= 1;
            if page.used == 0 && number != self.hot {
                page.cells = Box::default();
                page.free = NONE;
                page.epoch = page.epoch.wrapping_add(1);
                self.open.remove(number);
                self.holes.insert(number);
                self.live_pages -= 1;
            }
        }
        self.released_len = 0;
    }

    #[inline]
    pub(crate) fn set_deadline(&mut self, index: u32, deadline: u64) {
        let deadline = deadline.max(self.base);
        let low = deadline as u32;
        let was_far = self.cell(index).low() == FAR;
        if deadline - self.base < 1 << 31 && low < FAR {
            self.cell_mut(index).set_low(low);
            if was_far {
                self.far.remove(&index);
            }
        } else {
            self.cell_mut(index).set_low(FAR);
            self.far.insert(index, deadline);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.live_pages * PAGE as usize * size_of::<Cell>()
            + self.pages.capacity() * size_of::<Page>()
            + self.open.bytes()
            + self.holes.bytes()
            + self.far.len() * 2 * size_of::<(u32, u64)>()
    }

    #[inline]
    fn cell(&self, index: u32) -> &Cell {
        &self.pages[(index / PAGE) as usize].cells[(index % PAGE) as usize]
    }

    #[inline]
    fn cell_mut(&mut self, index: u32) -> &mut Cell {
        &mut self.pages[(index / PAGE) as usize].cells[(index % PAGE) as usize]
    }

    #[inline]
    fn complete(&self, index: u32, cell: &Cell) -> Option<Timer> {
        let deadline = match cell.low() {
            FREE => return None,
            FAR => *self.far.get(&index)?,
            low => {
                let ahead = low.wrapping_sub(self.base as u32) as i32;
                self.base.saturating_add_signed(i64::from(ahead))
            }
        };
        Some(Timer {
            deadline,
            registration: cell.registration(),
        })
    }

    #[cold]
    fn add_page(&mut self) -> u32 {
        let number = self.holes.first().unwrap_or(self.pages.len() as u32);
        assert!(number < u32::MAX / PAGE, "2^32 timers are pending");
        let mut cell = Cell([0; 9]);
        cell.set_low(FREE);
        let mut cells = vec![cell; PAGE as usize].into_boxed_slice();
        for (cell, next) in cells.iter_mut().zip(1..PAGE) {
            cell.set_registration(next);
        }
        cells[PAGE as usize - 1].set_registration(u32::from(NONE));
        if let Some(page) = self.pages.get_mut(number as usize) {
            page.cells = cells;
            page.free = 0;
        } else {
            self.pages.push(Page {
                cells,
                free: 0,
                used: 0,
                epoch: 0,
            });
        }
        self.holes.remove(number);
        self.open.insert(number);
        self.live_pages += 1;
        number
    }
}

impl Timers for Slab {
    /// Stale records may ask for a place whose page is gone.
    #[inline]
    fn timer(&self, index: u32) -> Option<Timer> {
        let page = &self.pages[(index / PAGE) as usize];
        self.complete(index, page.cells.get((index % PAGE) as usize)?)
    }

    #[inline]
    fn set_registration(&mut self, index: u32, registration: u32) {
        self.cell_mut(index).set_registration(registration);
    }
}
