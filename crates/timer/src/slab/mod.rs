//! The slab under a [`TimerSet`](crate::TimerSet): where its timers are kept, and their names.
//!
//! A timer takes a *cell* of nine bytes: the queue's registration (4), the low 32 bits of its
//! deadline (4), and a generation (1). Nearly all deadlines are within 2^31 ticks of the queue's
//! position, which tells the upper bits. The others (25 days ahead at one tick a millisecond) are
//! in a side map as a whole.
//!
//! Cells are in pages. A page that becomes empty goes back to the allocator.
//!
//! **Invariant: no name is given twice.** A name, [`TimerId`], consists of the cell's index, an
//! epoch and a generation:
//!
//! 1. Each new timer of a cell has the next generation, from 1 to 255. Then the cell's generations
//!    are spent, and it stays empty.
//! 2. When the generations of all 16 cells of its group are spent, the group begins the next epoch.
//!    All its cells start at generation 1 again, under names that nobody has had.
//! 3. A page whose memory went back remembers the last epoch of its groups, and goes on behind it.
//!    After 65,536 epochs it is not used again.
//!
//! So a timer that stays for ever keeps 15 cells empty at most, and a set has names for 2^48 timers
//! at least.

mod page;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use self::page::{BYTES, Cell, FAR, FREE, GROUP, Memory, NONE, PAGE, Page, SPENT};
use crate::bitset::BitSet;
use crate::queue::{Timer, Timers};

/// Names a timer of a [`TimerSet`](crate::TimerSet). The name of a timer that has ended is refused
/// for ever, since the set gives it to no other timer.
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

/// Released cells that wait to be counted.
const RELEASED: usize = 64;

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
    /// Cells that were released last. Their pages are told in batches: if each release wrote its
    /// page's counters, the processor would wait for the cache miss of the release before.
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
        let latest = self.released_len.wrapping_sub(1);
        if let Some(&index) = self.released.get(latest) {
            self.released_len = latest;
            return index;
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
        page.free = page.memory().cells[usize::from(at) % PAGE as usize].registration() as u16;
        page.used += 1;
        if page.free == NONE {
            self.open.remove(self.hot);
        }
        self.hot * PAGE + u32::from(at)
    }

    /// Ends the timer at `index` and returns its name.
    #[inline]
    pub(crate) fn release(&mut self, index: u32) -> TimerId {
        let page = &mut self.pages[(index / PAGE) as usize];
        let memory = page.memory();
        let cell = &mut memory.cells[(index % PAGE) as usize];
        let id = TimerId {
            index,
            epoch: memory.epochs[(index % PAGE / GROUP) as usize],
            generation: cell.generation(),
        };
        let was_far = cell.low() == FAR;
        cell.set_low(FREE);
        self.len -= 1;
        let generation = id.generation.wrapping_add(1);
        cell.set_generation(generation);
        let at = self.released_len;
        if generation == SPENT || was_far || at >= RELEASED {
            self.release_rarely(index, was_far, generation == SPENT);
            return id;
        }
        self.released[at] = index;
        self.released_len = at + 1;
        id
    }

    /// Does the rare part of [`release`](Self::release): out of line, so that it needs no registers
    /// for it.
    #[inline(never)]
    fn release_rarely(&mut self, index: u32, was_far: bool, is_spent: bool) {
        if was_far {
            self.far.remove(&index);
        }
        if is_spent {
            self.retire(index);
            return;
        }
        if self.released_len == RELEASED {
            self.settle();
        }
        self.released[self.released_len] = index;
        self.released_len += 1;
    }

    /// Gives the released cells back to their pages, and the pages that are empty then to the
    /// allocator.
    #[inline(never)]
    pub(crate) fn settle(&mut self) {
        let mut emptied = false;
        // Nothing but pages and their free cells in this loop: it runs once for every timer that
        // goes.
        let pages = self.pages.as_mut_slice();
        for &index in &self.released[..self.released_len.min(RELEASED)] {
            let number = index / PAGE;
            let page = &mut pages[number as usize];
            if page.free == NONE {
                self.open.insert(number);
            }
            page.free(index % PAGE);
            page.used -= 1;
            emptied |= page.used == 0;
        }
        if emptied {
            self.give_back_emptied();
        }
        self.released_len = 0;
    }

    /// Gives back the pages that the latest cells to be released have left empty.
    #[cold]
    fn give_back_emptied(&mut self) {
        for index in self.released.into_iter().take(self.released_len) {
            let number = index / PAGE;
            if self.pages[number as usize].used == 0 {
                self.give_back(number);
            }
        }
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
        let is_far = deadline - self.base >= 1 << 31 || deadline as u32 >= FAR;
        let cell = self.cell_mut(index);
        let was_far = cell.low() == FAR;
        cell.set_low(if is_far { FAR } else { deadline as u32 });
        if is_far || was_far {
            self.set_far(index, is_far.then_some(deadline));
        }
    }

    #[cold]
    fn set_far(&mut self, index: u32, deadline: Option<u64>) {
        match deadline {
            Some(deadline) => self.far.insert(index, deadline),
            None => self.far.remove(&index),
        };
    }

    pub(crate) fn bytes(&self) -> usize {
        self.live_pages * BYTES
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
    fn cell_mut(&mut self, index: u32) -> &mut Cell {
        let page = &mut self.pages[(index / PAGE) as usize];
        &mut page.memory().cells[(index % PAGE) as usize]
    }

    #[inline]
    fn complete(&self, index: u32, cell: &Cell) -> Option<Timer> {
        let low = cell.low();
        let deadline = if low < FAR {
            let ahead = low.wrapping_sub(self.base as u32) as i32;
            self.base.saturating_add_signed(i64::from(ahead))
        } else if low == FAR {
            *self.far.get(&index)?
        } else {
            return None;
        };
        Some(Timer {
            deadline,
            registration: cell.registration(),
        })
    }

    #[cold]
    fn add_page(&mut self) -> u32 {
        let number = self.holes.first().unwrap_or(self.pages.len() as u32);
        assert!(
            number < u32::MAX / PAGE,
            "no place is left: 2^32 timers are pending, or their names are spent"
        );
        if number as usize == self.pages.len() {
            self.pages.push(Page::new());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(slab: &mut Slab) -> TimerId {
        let index = slab.allocate();
        slab.set_deadline(index, 7);
        let id = slab.id(index);
        assert!(slab.find(id).is_some());
        assert_eq!(slab.release(index), id);
        assert!(slab.find(id).is_none());
        id
    }

    #[test]
    fn a_group_that_has_used_all_its_epochs_is_retired_and_its_page_goes_back() {
        let mut slab = Slab::new(0);
        let first = cycle(&mut slab);
        for epoch in &mut *slab.pages[0].memory().epochs {
            *epoch = u16::MAX;
        }
        // The names of the last epoch of a whole page, and one more: the first of the next page.
        let names = PAGE as usize * usize::from(u8::MAX) - 1;
        for _ in 0..names {
            assert_eq!(cycle(&mut slab).index / PAGE, 0);
        }
        let next = cycle(&mut slab);
        assert_eq!((next.index / PAGE, slab.live_pages), (1, 1));
        assert!(slab.pages[0].memory.is_none() && slab.find(first).is_none());
        assert_eq!(
            slab.holes.first(),
            None,
            "a page without names is used again"
        );
    }

    #[test]
    fn a_page_that_gets_memory_again_goes_on_behind_its_last_epoch() {
        let mut slab = Slab::new(0);
        let indices: Vec<u32> = (0..2 * PAGE).map(|_| slab.allocate()).collect();
        let before: Vec<TimerId> = indices.iter().map(|index| slab.id(*index)).collect();
        slab.pages[0].memory().epochs[3] = 9;
        indices.iter().for_each(|index| {
            slab.release(*index);
        });
        slab.settle();
        assert_eq!(slab.live_pages, 1);
        for _ in 0..2 * PAGE {
            let index = slab.allocate();
            slab.set_deadline(index, 7);
        }
        assert_eq!(slab.pages[0].memory().epochs[..4], [10; 4]);
        assert!(before.iter().all(|id| slab.find(*id).is_none()));
    }
}
