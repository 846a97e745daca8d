//! Typed entries in pages of equal slots: eight bytes beside each key and value.
//!
//! ```text
//! bytes 0–4   the deadline: 40 bits, 34 years of milliseconds
//! byte  5     bits 8 to 15 of the wheel's registration
//! byte  6     the eviction policy's state
//! byte  7     whether the entry is pinned; a value that is neither true nor false marks an empty slot
//! then        the key and the value
//! ```
//!
//! The deadline's lower 32 bits and the policy's byte are atomic. So a hit, under a shared borrow, can move the
//! deadline later and be counted.
//!
//! An entry's id is the number of its page and its place on the page. New entries go to the lowest page that has
//! room. [`Slots::sparse`] tells when the highest page is worth emptying into the lower ones. A page without entries
//! is freed at once.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use std::vec::IntoIter;

use tidewheel_timer::{BitSet, Timer, Timers};

use super::attributes::Attributes;
use super::columns::Columns;
use crate::prefetch::prefetch;

/// "No deadline" in 40 bits.
const NEVER: u64 = (1 << 40) - 1;

/// The latest deadline that can be kept.
pub(crate) const DEADLINE_MAX: u64 = NEVER - 1;

/// Bytes that a page should not exceed by much.
const PAGE_BYTES: usize = 64 * 1024;

/// "No free slot".
const FULL: u16 = u16::MAX;

#[derive(Debug)]
pub(crate) struct Entry<K, V> {
    deadline_low: AtomicU32,
    deadline_high: u8,
    registration: u8,
    policy: AtomicU8,
    pub(crate) pinned: bool,
    pub(crate) key: K,
    pub(crate) value: V,
}

#[derive(Debug)]
enum Cell<K, V> {
    /// The next vacant slot of the page.
    Vacant(u16),
    Live(Entry<K, V>),
}

type Cells<K, V> = Box<[Cell<K, V>]>;

#[derive(Debug)]
struct Page<K, V> {
    /// Empty while the page has no memory.
    cells: Cells<K, V>,
    columns: Option<Box<Columns>>,
    free: u16,
    used: u16,
}

/// All entries, page by page.
#[derive(Debug)]
pub(crate) struct IntoSlots<K, V> {
    pages: IntoIter<Page<K, V>>,
    cells: IntoIter<Cell<K, V>>,
}

impl<K, V> Iterator for IntoSlots<K, V> {
    type Item = Entry<K, V>;

    fn next(&mut self) -> Option<Entry<K, V>> {
        loop {
            for cell in &mut self.cells {
                if let Cell::Live(entry) = cell {
                    return Some(entry);
                }
            }
            self.cells = self.pages.next()?.cells.into_iter();
        }
    }
}

impl<K, V> Entry<K, V> {
    pub(crate) fn new(key: K, value: V) -> Self {
        Self {
            deadline_low: AtomicU32::new(NEVER as u32),
            deadline_high: (NEVER >> 32) as u8,
            registration: 0,
            policy: AtomicU8::new(0),
            pinned: false,
            key,
            value,
        }
    }

    /// Whether the deadline is after this tick, or there is none.
    #[inline(always)]
    pub(crate) fn lasts_past(&self, tick: u64) -> bool {
        // In the first 49 days of engine time the lower half tells it, of nearly all entries.
        let low = u64::from(self.deadline_low.load(Relaxed));
        low > tick || self.raw_deadline() > tick
    }

    #[inline]
    fn raw_deadline(&self) -> u64 {
        u64::from(self.deadline_high) << 32 | u64::from(self.deadline_low.load(Relaxed))
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<u64> {
        let deadline = self.raw_deadline();
        (deadline != NEVER).then_some(deadline)
    }

    #[inline]
    pub(crate) fn set_deadline(&mut self, deadline: Option<u64>) {
        let raw = deadline.map_or(NEVER, |deadline| deadline.min(DEADLINE_MAX));
        *self.deadline_low.get_mut() = raw as u32;
        self.deadline_high = (raw >> 32) as u8;
    }

    /// Moves a deadline later. Returns false, and does nothing, if it would be earlier, or there is none.
    #[inline]
    pub(crate) fn prolong(&mut self, deadline: u64) -> bool {
        let is_later = self.deadline().is_some_and(|old| deadline >= old);
        if is_later {
            self.set_deadline(Some(deadline));
        }
        is_later
    }

    /// Moves a deadline later under a shared borrow. Returns false when that takes an exclusive borrow: when the
    /// deadline's upper 8 bits change (every 2^32 ticks), or when there is no deadline.
    #[inline]
    pub(crate) fn slide(&self, deadline: u64) -> bool {
        let high = u64::from(self.deadline_high) << 32;
        if deadline >> 32 << 32 != high || self.raw_deadline() == NEVER || deadline >= NEVER {
            return false;
        }
        // If two threads slide it at once, the later deadline stays.
        self.deadline_low.fetch_max(deadline as u32, Relaxed);
        true
    }

    #[inline]
    pub(crate) fn policy(&self) -> u8 {
        self.policy.load(Relaxed)
    }

    #[inline]
    pub(crate) fn set_policy(&self, policy: u8) {
        self.policy.store(policy, Relaxed);
    }
}

/// Entries of one store.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Slots<K, V> {
    pages: Vec<Page<K, V>>,
    /// The page that slots are taken from; it stays when it is empty.
    hot: u32,
    /// The slots of its page before this one are vacant: where [`Slots::sparse`] goes on looking.
    searched: u32,
    /// Pages with memory and room.
    open: BitSet,
    /// Pages without memory below the last one.
    holes: BitSet,
    live_pages: usize,
    len: usize,
    /// Memory of freed pages, while frees are deferred.
    freed: Option<Vec<Cells<K, V>>>,
}

/// Memory that slots no longer need.
#[derive(Debug)]
#[allow(dead_code, reason = "kept to be dropped")]
pub(crate) struct FreedSlots<K, V>(Vec<Cells<K, V>>);

impl<K, V> Slots<K, V> {
    const PAGE: u32 = {
        let fit = PAGE_BYTES / size_of::<Cell<K, V>>();
        let fit = if fit < 8 {
            8
        } else if fit > 1024 {
            1024
        } else {
            fit
        };
        1 << fit.ilog2()
    };

    pub(crate) const fn new() -> Self {
        Self {
            pages: Vec::new(),
            hot: 0,
            searched: 0,
            open: BitSet::new(),
            holes: BitSet::new(),
            live_pages: 0,
            len: 0,
            freed: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Ids are below this.
    pub(crate) fn end(&self) -> u32 {
        self.pages.len() as u32 * Self::PAGE
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&Entry<K, V>> {
        let page = self.pages.get((id / Self::PAGE) as usize)?;
        match page.cells.get((id % Self::PAGE) as usize)? {
            Cell::Live(entry) => Some(entry),
            Cell::Vacant(_) => None,
        }
    }

    /// An entry, and whether its page has attributes.
    #[inline]
    pub(crate) fn look(&self, id: u32) -> Option<(&Entry<K, V>, bool)> {
        let page = self.pages.get((id / Self::PAGE) as usize)?;
        match page.cells.get((id % Self::PAGE) as usize)? {
            Cell::Live(entry) => Some((entry, page.columns.is_some())),
            Cell::Vacant(_) => None,
        }
    }

    /// Asks for a slot and does not wait for it. Where slots are not aligned to cache lines, the next one begins where this
    /// one ends.
    #[inline]
    pub(crate) fn prefetch(&self, id: u32) {
        let at = (id % Self::PAGE) as usize;
        let Some(page) = self.pages.get((id / Self::PAGE) as usize) else {
            return;
        };
        for cell in page.cells.iter().skip(at).take(2) {
            prefetch(cell);
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Entry<K, V>> {
        let page = self.pages.get_mut((id / Self::PAGE) as usize)?;
        match page.cells.get_mut((id % Self::PAGE) as usize)? {
            Cell::Live(entry) => Some(entry),
            Cell::Vacant(_) => None,
        }
    }

    /// An entry whose page has no attributes.
    #[inline]
    pub(crate) fn plain_mut(&mut self, id: u32) -> Option<&mut Entry<K, V>> {
        let page = self.pages.get_mut((id / Self::PAGE) as usize)?;
        if page.columns.is_some() {
            return None;
        }
        match page.cells.get_mut((id % Self::PAGE) as usize)? {
            Cell::Live(entry) => Some(entry),
            Cell::Vacant(_) => None,
        }
    }

    /// The attributes of an entry's page, and its place there; `None` when the page has none.
    #[inline]
    pub(crate) fn columns(&self, id: u32) -> Option<(&Columns, usize)> {
        let columns = self.pages[(id / Self::PAGE) as usize].columns.as_deref()?;
        Some((columns, (id % Self::PAGE) as usize))
    }

    /// The attributes of an entry's page, the entry's place there, and how many places there are.
    pub(crate) fn columns_mut(&mut self, id: u32) -> (&mut Columns, usize, usize) {
        let columns = &mut self.pages[(id / Self::PAGE) as usize].columns;
        (
            columns.get_or_insert_default(),
            (id % Self::PAGE) as usize,
            Self::PAGE as usize,
        )
    }

    /// Whether an entry's page has attributes.
    #[inline]
    pub(crate) fn has_columns(&self, id: u32) -> bool {
        self.pages[(id / Self::PAGE) as usize].columns.is_some()
    }

    pub(crate) fn allocate(&mut self, entry: Entry<K, V>) -> u32 {
        if self
            .pages
            .get(self.hot as usize)
            .is_none_or(|page| page.free == FULL)
        {
            let page = match self.open.first() {
                Some(page) => page,
                None => self.add_page(),
            };
            self.fill(page);
        }
        let page = &mut self.pages[self.hot as usize];
        let at = page.free;
        let Cell::Vacant(next) = page.cells[usize::from(at)] else {
            unreachable!("a free slot is vacant")
        };
        page.free = next;
        page.used += 1;
        page.cells[usize::from(at)] = Cell::Live(entry);
        if next == FULL {
            self.open.remove(self.hot);
        }
        self.len += 1;
        self.hot * Self::PAGE + u32::from(at)
    }

    /// Puts an entry in the place of another one, whose timer it takes over: deadline and registration.
    #[inline]
    pub(crate) fn exchange(&mut self, id: u32, mut entry: Entry<K, V>) -> Option<Entry<K, V>> {
        let old = self.get_mut(id)?;
        entry.deadline_low = AtomicU32::new(old.deadline_low.load(Relaxed));
        entry.deadline_high = old.deadline_high;
        entry.registration = old.registration;
        Some(std::mem::replace(old, entry))
    }

    /// Takes slots from this page from now on.
    fn fill(&mut self, page: u32) {
        self.hot = page;
        if self.searched / Self::PAGE == page {
            self.searched = page * Self::PAGE;
        }
    }

    /// Takes an entry out.
    pub(crate) fn release(&mut self, id: u32) -> Option<Entry<K, V>> {
        let number = id / Self::PAGE;
        let page = self.pages.get_mut(number as usize)?;
        let at = (id % Self::PAGE) as usize;
        let cell = page.cells.get_mut(at)?;
        if let Cell::Vacant(_) = cell {
            return None;
        }
        let Cell::Live(entry) = std::mem::replace(cell, Cell::Vacant(page.free)) else {
            unreachable!("looked at just now")
        };
        if page.free == FULL {
            self.open.insert(number);
        }
        page.free = at as u16;
        page.used -= 1;
        self.len -= 1;
        if page.used == 0 {
            if number == self.hot {
                // The page is kept for the next entries, without columns.
                page.columns = None;
            } else {
                self.free_page(number);
            }
        }
        Some(entry)
    }

    #[inline]
    pub(crate) fn take_freed(&mut self) -> Option<FreedSlots<K, V>> {
        let freed = self.freed.as_mut().filter(|freed| !freed.is_empty())?;
        Some(FreedSlots(std::mem::take(freed)))
    }

    /// From now on freed memory waits for [`Slots::take_freed`].
    pub(crate) fn defer_frees(&mut self) {
        self.freed.get_or_insert_default();
    }

    fn free_page(&mut self, number: u32) {
        let hole = Page {
            cells: Box::default(),
            columns: None,
            free: FULL,
            used: 0,
        };
        let page = std::mem::replace(&mut self.pages[number as usize], hole);
        if let Some(freed) = &mut self.freed {
            freed.push(page.cells);
        }
        self.open.remove(number);
        self.holes.insert(number);
        self.live_pages -= 1;
        while self.pages.last().is_some_and(|page| page.cells.is_empty()) {
            self.pages.pop();
            self.holes.remove(self.pages.len() as u32);
        }
        if self.pages.capacity() > 64 && self.pages.len() < self.pages.capacity() / 4 {
            self.pages.shrink_to(self.pages.capacity() / 2);
        }
    }

    #[cold]
    fn add_page(&mut self) -> u32 {
        let number = self.holes.first().unwrap_or(self.pages.len() as u32);
        assert!(
            number < u32::MAX / Self::PAGE,
            "2^32 entries are in one shard"
        );
        let links = (1..Self::PAGE as u16).chain([FULL]);
        let page = Page {
            cells: links.map(Cell::Vacant).collect(),
            columns: None,
            // No entry has id 0: in the index it marks an empty place.
            free: u16::from(number == 0),
            used: 0,
        };
        if let Some(hole) = self.pages.get_mut(number as usize) {
            *hole = page;
            self.holes.remove(number);
        } else {
            self.pages.push(page);
        }
        self.open.insert(number);
        self.live_pages += 1;
        number
    }

    /// An entry of the highest page, if a quarter of all slots is vacant and a lower page has room. Calls go on where
    /// the last one stopped, so a page is searched once from end to end.
    pub(crate) fn sparse(&mut self) -> Option<u32> {
        let held = self.live_pages * Self::PAGE as usize;
        if self.len + 2 * Self::PAGE as usize > held / 4 * 3 {
            return None;
        }
        let top = self.pages.len() as u32 - 1;
        let page = self.open.first().filter(|page| *page < top)?;
        self.fill(page);
        if self.pages[top as usize].used == 0 {
            // It was the hot one.
            self.free_page(top);
            return self.sparse();
        }
        let first = top * Self::PAGE;
        let from = match self.searched.checked_sub(first) {
            Some(from) if from < Self::PAGE => from,
            _ => 0,
        };
        let at = self.pages[top as usize].cells[from as usize..]
            .iter()
            .position(|cell| matches!(cell, Cell::Live(_)))?;
        self.searched = first + from + at as u32;
        Some(self.searched)
    }

    /// Forgets the attributes of the slot's last entry.
    pub(crate) fn clear_columns(&mut self, id: u32) {
        let (columns, at, len) = self.columns_mut(id);
        columns.set_version(at, 0, len);
        columns.write(at, &Attributes::default(), len);
    }

    /// The first id of an entry's page.
    pub(crate) fn first_of_page(&self, id: u32) -> u32 {
        id - id % Self::PAGE
    }

    /// The attributes of the pages that have some.
    pub(crate) fn all_columns(&self) -> impl Iterator<Item = &Columns> {
        self.pages.iter().filter_map(|page| page.columns.as_deref())
    }

    /// Ids of all entries, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.pages.iter().zip(0..).flat_map(|(page, number)| {
            page.cells
                .iter()
                .zip(number * Self::PAGE..)
                .filter(|(cell, _)| matches!(cell, Cell::Live(_)))
                .map(|(_, id)| id)
        })
    }

    /// All entries, by value.
    pub(crate) fn into_entries(self) -> IntoSlots<K, V> {
        IntoSlots {
            pages: self.pages.into_iter(),
            cells: Vec::new().into_iter(),
        }
    }

    /// Heap bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let columns: usize = self
            .pages
            .iter()
            .filter_map(|page| page.columns.as_ref())
            .map(|columns| columns.bytes())
            .sum();
        self.live_pages * Self::PAGE as usize * size_of::<Cell<K, V>>()
            + self.pages.capacity() * size_of::<Page<K, V>>()
            + self.open.bytes()
            + self.holes.bytes()
            + columns
    }

    /// Panics if the structure is broken. O(n).
    pub(crate) fn validate(&self) {
        let mut len = 0;
        let mut live_pages = 0;
        for (number, page) in self.pages.iter().enumerate() {
            let live = page
                .cells
                .iter()
                .filter(|cell| matches!(cell, Cell::Live(_)))
                .count();
            assert_eq!(live, usize::from(page.used), "entries of page {number}");
            len += live;
            live_pages += usize::from(!page.cells.is_empty());
            let mut free = 0;
            let mut at = page.free;
            while at != FULL {
                let Cell::Vacant(next) = page.cells[usize::from(at)] else {
                    panic!("a free slot of page {number} is taken")
                };
                free += 1;
                at = next;
            }
            let reserved = usize::from(number == 0 && !page.cells.is_empty());
            assert_eq!(live + free + reserved, page.cells.len(), "slots leak");
        }
        if let Some(page) = self.pages.get((self.searched / Self::PAGE) as usize) {
            let before = (self.searched % Self::PAGE) as usize;
            let mut searched = page.cells.iter().take(before);
            assert!(
                searched.all(|cell| matches!(cell, Cell::Vacant(_))),
                "an entry is where none is looked for"
            );
        }
        assert_eq!(len, self.len, "entries");
        assert_eq!(live_pages, self.live_pages, "pages with memory");
    }
}

impl<K, V> Timers for Slots<K, V> {
    // Quarters of a second: these bits tell in which of the last 65 s before its deadline a timer is registered. So if it
    // gets an earlier deadline which is still after that, the wheel need not be told.
    const REGISTRATION_BITS: u32 = 0xff00;

    #[inline]
    fn timer(&self, id: u32) -> Option<Timer> {
        let entry = self.get(id)?;
        Some(Timer {
            deadline: entry.deadline()?,
            registration: u32::from(entry.registration) << 8,
        })
    }

    #[inline]
    fn set_registration(&mut self, id: u32, registration: u32) {
        if let Some(entry) = self.get_mut(id) {
            entry.registration = (registration >> 8) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_eight_bytes_beside_key_and_value() {
        assert_eq!(size_of::<Cell<u64, u64>>(), 24);
        let pair = size_of::<(String, Box<[u8]>)>();
        assert_eq!(size_of::<Cell<String, Box<[u8]>>>(), 8 + pair);
    }

    type Keys = Slots<u32, ()>;

    /// Takes every slot of this many pages.
    fn fill_up(slots: &mut Keys, pages: usize) {
        // No entry has id 0.
        for key in slots.len() as u32..pages as u32 * Keys::PAGE - 1 {
            slots.allocate(Entry::new(key, ()));
        }
        assert_eq!(slots.live_pages, pages);
        slots.validate();
    }

    /// Leaves one entry of eight on every page.
    fn thin_out(slots: &mut Keys) {
        let ids: Vec<u32> = slots.ids().filter(|id| id % 8 != 5).collect();
        for id in ids {
            assert!(slots.release(id).is_some());
        }
    }

    /// Moves an entry off a sparse page, if there is one.
    fn move_one(slots: &mut Keys) -> bool {
        let Some(id) = slots.sparse() else {
            return false;
        };
        let entry = slots.release(id).expect("an entry is found");
        assert!(slots.allocate(entry) < id);
        true
    }

    /// The search for entries goes on where it stopped. Slots before that point may have been taken meanwhile.
    #[test]
    fn emptying_a_page_finds_what_came_to_it_after_it_was_searched_in_part() {
        let mut slots = Keys::new();
        for pages in [16, 9, 5] {
            fill_up(&mut slots, pages);
            thin_out(&mut slots);
            // Half of what is on the highest page.
            for _ in 0..Keys::PAGE / 16 {
                assert!(move_one(&mut slots));
            }
            fill_up(&mut slots, pages);
            thin_out(&mut slots);
            while move_one(&mut slots) {}
            slots.validate();
            assert!(
                slots.live_pages <= 2 + pages / 4,
                "{} of {pages} pages for an eighth of the entries",
                slots.live_pages
            );
        }
    }

    #[test]
    fn a_deadline_is_past_a_tick_in_whatever_half_of_it_they_differ() {
        let mut entry = Entry::new((), ());
        let ticks = [0, 1, 7, 1 << 20, u64::from(u32::MAX) - 1, 1 << 32];
        let ticks = ticks
            .into_iter()
            .flat_map(|tick| [tick, tick + (1 << 32), tick + (5 << 32)]);
        for deadline in ticks.clone() {
            entry.set_deadline(Some(deadline));
            for tick in ticks.clone() {
                assert_eq!(
                    entry.lasts_past(tick),
                    deadline > tick,
                    "{deadline} > {tick}"
                );
            }
        }
        entry.set_deadline(None);
        assert!(ticks.into_iter().all(|tick| entry.lasts_past(tick)));
    }

    #[test]
    fn deadlines_slide_under_a_shared_borrow_within_their_high_byte() {
        let mut entry = Entry::new((), ());
        assert!(!entry.slide(5), "there is no deadline to slide");
        entry.set_deadline(Some(7));
        assert!(entry.slide(9));
        assert!(entry.slide(8), "an earlier one changes nothing");
        assert_eq!(entry.deadline(), Some(9));
        assert!(!entry.slide(1 << 32));
        entry.set_deadline(Some(u64::MAX));
        assert_eq!(entry.deadline(), Some(DEADLINE_MAX));
    }
}
