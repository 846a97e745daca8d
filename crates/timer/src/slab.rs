//! The slab under a [`TimerSet`](crate::TimerSet): where its timers are kept, and their names.
//!
//! A timer takes nine bytes: the queue's registration, the low 32 bits of its deadline, and a
//! generation. Deadlines lie within 2^31 ticks of the queue's position, which tells the other bits;
//! those that do not (25 days ahead at one tick a millisecond) keep their full value in a side map.
//!
//! Cells live in pages; a page that becomes empty goes back to the allocator.
//!
//! **Invariant: no name is given twice.** A cell has 255 names, its generations. Once they are spent it is
//! given to nobody until those of its whole group of 16 are; then the group begins an epoch, in which they all
//! have other names. A group has 65,536 epochs, and a page that gets memory again goes on from the last one
//! that any of its groups had; a page without epochs is not used again. So a timer that stays for ever holds
//! back 15 cells at most, and 2^32 pages of names are there before places run out.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::bitset::BitSet;
use crate::queue::{Timer, Timers};

/// Names a timer of a [`TimerSet`](crate::TimerSet). A name outlives its timer harmlessly: it is refused for
/// ever, since the set gives it to no other timer.
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

/// Cells that begin an epoch together. The fewer, the fewer wait for one another; 16 cost 1/8 byte each.
const GROUP: u32 = 16;

const CELLS: usize = PAGE as usize;
const GROUPS: usize = (PAGE / GROUP) as usize;

/// The generation of a cell's first timer in an epoch.
const FIRST: u8 = 1;

/// The generation of a cell that has had all others.
const SPENT: u8 = 0;

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

    #[inline]
    fn set_generation(&mut self, generation: u8) {
        self.0[8] = generation;
    }
}

#[derive(Debug)]
struct Memory {
    cells: Box<[Cell; CELLS]>,
    /// Of each group.
    epochs: Box<[u16; GROUPS]>,
}

impl Memory {
    /// All cells are free, each linked to the next.
    fn new(epoch: u16) -> Self {
        let mut cell = Cell([0; 9]);
        cell.set_low(FREE);
        cell.set_generation(FIRST);
        let mut cells = boxed(vec![cell; CELLS]);
        for (cell, next) in cells.iter_mut().zip(1..PAGE) {
            cell.set_registration(next);
        }
        cells[CELLS - 1].set_registration(u32::from(NONE));
        let epochs = boxed(vec![epoch; GROUPS]);
        Self { cells, epochs }
    }
}

/// An array that was never on the stack.
fn boxed<T, const N: usize>(items: Vec<T>) -> Box<[T; N]> {
    let array = items.into_boxed_slice().try_into();
    array.unwrap_or_else(|_| unreachable!("as many as were asked for"))
}

#[derive(Debug)]
struct Page {
    memory: Option<Memory>,
    /// Head of the free cells, linked through their registration.
    free: u16,
    used: u16,
    /// Where its groups begin when it gets memory.
    next_epoch: u32,
}

impl Page {
    /// One that is in use has memory.
    #[inline]
    fn memory(&mut self) -> &mut Memory {
        self.memory.as_mut().expect("a page in use has memory")
    }

    /// Puts a cell at the head of the free ones.
    #[inline]
    fn free(&mut self, at: u32) {
        let free = u32::from(self.free);
        self.memory().cells[at as usize % CELLS].set_registration(free);
        self.free = at as u16;
    }

    /// Begins an epoch with the group that starts at `first`, if all its names of this one are spent and
    /// there is another. Tells whether it did.
    fn renew(&mut self, first: u32) -> bool {
        let memory = self.memory();
        let epoch = &mut memory.epochs[(first / GROUP) as usize];
        let range = first as usize..(first + GROUP) as usize;
        let cells = &mut memory.cells[range];
        let are_spent = cells.iter().all(|cell| cell.generation() == SPENT);
        if !are_spent || *epoch == u16::MAX {
            return false;
        }
        *epoch += 1;
        cells.iter_mut().for_each(|cell| cell.set_generation(FIRST));
        (first..first + GROUP).for_each(|at| self.free(at));
        true
    }
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
        let memory = self.memory(index);
        TimerId {
            index,
            epoch: memory.epochs[(index % PAGE / GROUP) as usize],
            generation: memory.cells[(index % PAGE) as usize].generation(),
        }
    }

    /// The timer of that name, if it is still pending.
    #[inline]
    pub(crate) fn find(&self, id: TimerId) -> Option<Timer> {
        let page = self.pages.get((id.index / PAGE) as usize)?;
        let memory = page.memory.as_ref()?;
        let cell = &memory.cells[(id.index % PAGE) as usize];
        let epoch = memory.epochs[(id.index % PAGE / GROUP) as usize];
        if epoch != id.epoch || cell.generation() != id.generation {
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
            self.heat();
        }
        let page = &mut self.pages[self.hot as usize];
        let at = page.free;
        page.free = page.memory().cells[usize::from(at) % CELLS].registration() as u16;
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
        let generation = cell.generation().wrapping_add(1);
        cell.set_generation(generation);
        if was_far {
            self.far.remove(&index);
        }
        self.len -= 1;
        if generation == SPENT {
            self.retire(index);
            return;
        }
        if self.released_len == RELEASED {
            self.settle();
        }
        self.released[self.released_len] = index;
        self.released_len += 1;
    }

    /// Gives the released cells back to their pages, and the pages that are empty then to the allocator.
    #[inline(never)]
    pub(crate) fn settle(&mut self) {
        for at in 0..self.released_len {
            let index = self.released[at];
            let number = index / PAGE;
            let page = &mut self.pages[number as usize];
            if page.free == NONE {
                self.open.insert(number);
            }
            page.free(index % PAGE);
            page.used -= 1;
            if page.used == 0 {
                self.give_back(number);
            }
        }
        self.released_len = 0;
    }

    /// Keeps a cell whose names are spent from being used, until its group begins an epoch.
    #[cold]
    fn retire(&mut self, index: u32) {
        let number = index / PAGE;
        let page = &mut self.pages[number as usize];
        page.used -= 1;
        let was_full = page.free == NONE;
        if page.renew(index % PAGE / GROUP * GROUP) && was_full {
            self.open.insert(number);
        }
        if self.pages[number as usize].used == 0 {
            self.give_back(number);
        }
    }

    /// Gives a page that is empty to the allocator, unless cells are taken from it.
    fn give_back(&mut self, number: u32) {
        if number == self.hot {
            return;
        }
        let page = &mut self.pages[number as usize];
        let Some(memory) = page.memory.take() else {
            return;
        };
        let last = memory.epochs.iter().max().copied().unwrap_or(u16::MAX);
        page.next_epoch = u32::from(last) + 1;
        page.free = NONE;
        self.open.remove(number);
        if page.next_epoch <= u32::from(u16::MAX) {
            self.holes.insert(number);
        }
        self.live_pages -= 1;
    }

    /// Takes cells from another page from now on.
    #[cold]
    fn heat(&mut self) {
        let before = self.hot;
        self.hot = self.open.first().unwrap_or_else(|| self.add_page());
        // Empty without a free cell: all its names are spent.
        if self.pages[before as usize].used == 0 {
            self.give_back(before);
        }
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
        self.live_pages * (CELLS * size_of::<Cell>() + GROUPS * size_of::<u16>())
            + self.pages.capacity() * size_of::<Page>()
            + self.open.bytes()
            + self.holes.bytes()
            + self.far.len() * 2 * size_of::<(u32, u64)>()
    }

    #[inline]
    fn memory(&self, index: u32) -> &Memory {
        let page = &self.pages[(index / PAGE) as usize];
        page.memory.as_ref().expect("a page in use has memory")
    }

    #[inline]
    fn cell(&self, index: u32) -> &Cell {
        &self.memory(index).cells[(index % PAGE) as usize]
    }

    #[inline]
    fn cell_mut(&mut self, index: u32) -> &mut Cell {
        let page = &mut self.pages[(index / PAGE) as usize];
        &mut page.memory().cells[(index % PAGE) as usize]
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
        if number as usize == self.pages.len() {
            self.pages.push(Page {
                memory: None,
                free: NONE,
                used: 0,
                next_epoch: 0,
            });
        }
        let page = &mut self.pages[number as usize];
        page.memory = Some(Memory::new(page.next_epoch as u16));
        page.free = 0;
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
        let memory = page.memory.as_ref()?;
        self.complete(index, &memory.cells[(index % PAGE) as usize])
    }

    #[inline]
    fn set_registration(&mut self, index: u32, registration: u32) {
        self.cell_mut(index).set_registration(registration);
    }
}
