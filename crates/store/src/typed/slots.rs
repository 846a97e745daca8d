//! Typed entries in pages of equal slots: eight bytes beside each key and value.
//!
//! An entry's id is the number of its page and its place on the page. New entries go to the lowest
//! page that has room. [`Slots::sparse`] tells when the highest page is worth emptying into the
//! lower ones. A page without entries is freed at once.

use std::sync::Arc;
use std::vec::IntoIter;

use tidewheel_timer::{BitSet, Timer, Timers};

use super::attributes::Attributes;
use super::columns::Columns;
use super::spots::Spots;
use crate::prefetch::prefetch;
use crate::shared::{Cells, Entry, Loose, Own, Purpose, Roots, may_be_told};

/// Bytes that a page should not exceed by much. Miri looks at each slot of a page whenever a
/// reference to its slots is made.
const PAGE_BYTES: usize = if cfg!(miri) { 1024 } else { 64 * 1024 };

/// "No free slot".
const FULL: u16 = u16::MAX;

#[derive(Debug)]
pub(super) struct Page<K, V> {
    /// None while the page has no memory.
    pub(super) cells: Cells<K, V>,
    pub(super) columns: Option<Box<Columns>>,
    free: u16,
    used: u16,
}

/// All entries, page by page.
#[derive(Debug)]
pub(crate) struct IntoSlots<K, V> {
    pages: IntoIter<Page<K, V>>,
    cells: Cells<K, V>,
    at: usize,
}

impl<K, V> Iterator for IntoSlots<K, V> {
    type Item = Loose<K, V>;

    fn next(&mut self) -> Option<Loose<K, V>> {
        loop {
            while self.at < self.cells.len() {
                self.at += 1;
                let entry = self.cells.take(self.at - 1, FULL);
                if entry.is_some() {
                    return entry;
                }
            }
            self.cells = self.pages.next()?.cells;
            self.at = 0;
        }
    }
}

/// Slots of a page: a power of two.
pub(crate) const fn page_slots<K, V>() -> u32 {
    let fit = PAGE_BYTES / size_of::<Entry<K, V>>();
    let fit = if fit < 8 {
        8
    } else if fit > 1024 {
        1024
    } else {
        fit
    };
    1 << fit.ilog2()
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
    /// Memory of freed pages, if frees are deferred.
    freed: Vec<Cells<K, V>>,
    defers_frees: bool,
    /// The pointers by which readers without a lock find slots, if there are such readers.
    spots: Option<Spots>,
    /// Of its pages' memory.
    purpose: Purpose,
}

/// Memory that slots no longer need.
#[derive(Debug)]
#[allow(dead_code, reason = "kept to be dropped")]
pub(crate) struct FreedSlots<K, V>(Vec<Cells<K, V>>);

impl<K, V> Slots<K, V> {
    const PAGE: u32 = page_slots::<K, V>();

    pub(crate) const fn new() -> Self {
        Self {
            pages: Vec::new(),
            hot: 0,
            searched: 0,
            open: BitSet::new(),
            holes: BitSet::new(),
            live_pages: 0,
            len: 0,
            freed: Vec::new(),
            defers_frees: false,
            spots: None,
            purpose: Purpose::OWN,
        }
    }

    /// From now on readers without a lock may look into it. O(pages).
    pub(crate) fn share(&mut self, roots: &Arc<Roots>) {
        self.defer_frees();
        self.purpose.is_shared = true;
        let mut spots = Spots::new(roots);
        spots.make_room(self.pages.len());
        for (number, page) in (0..).zip(&mut self.pages) {
            page.cells.share();
            spots.publish(number, page);
        }
        self.spots = Some(spots);
    }

    /// From now on memory is to lie on huge pages, where there are any.
    pub(crate) fn use_huge_pages(&mut self) {
        self.purpose.on_huge_page = true;
    }

    pub(crate) fn uses_huge_pages(&self) -> bool {
        self.purpose.on_huge_page
    }

    /// New memory is these slots' alone. Readers have been led away.
    pub(crate) fn unshare(&mut self) {
        self.spots = None;
        self.purpose.is_shared = false;
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
        page.cells.get((id % Self::PAGE) as usize)
    }

    /// An entry, and whether its page has attributes.
    #[inline]
    pub(crate) fn look(&self, id: u32) -> Option<(&Entry<K, V>, bool)> {
        let page = self.pages.get((id / Self::PAGE) as usize)?;
        let entry = page.cells.get((id % Self::PAGE) as usize)?;
        Some((entry, page.columns.is_some()))
    }

    /// Asks for a slot and does not wait for it. Where slots are not aligned to cache lines, the
    /// next one begins where this one ends.
    #[inline]
    pub(crate) fn prefetch(&self, id: u32) {
        let at = (id % Self::PAGE) as usize;
        let Some(page) = self.pages.get((id / Self::PAGE) as usize) else {
            return;
        };
        for cell in [at, at + 1]
            .into_iter()
            .filter_map(|at| page.cells.address(at))
        {
            prefetch(cell);
        }
    }

    /// To be called before key or value is written. A copy that is of several writes may be no
    /// value of a type that is not listed. So readers must know.
    #[inline(always)]
    fn expect_change(&self) {
        if may_be_told::<K, V>() {
            let is_known = self.spots.as_ref().is_none_or(Spots::are_changing);
            assert!(is_known, "`begin_change` comes before a change");
        }
    }

    /// An entry that is to be changed, and whether its page has attributes.
    #[inline(always)]
    pub(crate) fn own(&mut self, id: u32) -> Option<(Own<'_, K, V>, bool)> {
        self.expect_change();
        let page = self.pages.get_mut((id / Self::PAGE) as usize)?;
        let entry = page.cells.own((id % Self::PAGE) as usize)?;
        Some((entry, page.columns.is_some()))
    }

    /// The attributes of an entry's page, and its place there; `None` when the page has none.
    #[inline]
    pub(crate) fn columns(&self, id: u32) -> Option<(&Columns, usize)> {
        let columns = self.pages[(id / Self::PAGE) as usize].columns.as_deref()?;
        Some((columns, (id % Self::PAGE) as usize))
    }

    /// The attributes of an entry's page, the entry's place there, and how many places there are.
    pub(crate) fn columns_mut(&mut self, id: u32) -> (&mut Columns, usize, usize) {
        let number = id / Self::PAGE;
        let page = &mut self.pages[number as usize];
        if page.columns.is_none() {
            page.columns = Some(Box::default());
            if let Some(spots) = &self.spots {
                spots.publish(number, page);
            }
        }
        (
            page.columns.as_mut().expect("it was seen to just now"),
            (id % Self::PAGE) as usize,
            Self::PAGE as usize,
        )
    }

    /// Returns whether an entry's page has attributes.
    #[inline]
    pub(crate) fn has_columns(&self, id: u32) -> bool {
        self.pages[(id / Self::PAGE) as usize].columns.is_some()
    }

    pub(crate) fn allocate(&mut self, entry: Loose<K, V>) -> u32 {
        self.expect_change();
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
        let next = page.cells.next_vacant(usize::from(at));
        page.free = next;
        page.used += 1;
        page.cells.put(usize::from(at), entry);
        if next == FULL {
            self.open.remove(self.hot);
        }
        self.len += 1;
        self.hot * Self::PAGE + u32::from(at)
    }

    /// Takes slots from this page from now on.
    fn fill(&mut self, page: u32) {
        self.hot = page;
        if self.searched / Self::PAGE == page {
            self.searched = page * Self::PAGE;
        }
    }

    /// Takes an entry out.
    pub(crate) fn release(&mut self, id: u32) -> Option<Loose<K, V>> {
        let number = id / Self::PAGE;
        let page = self.pages.get_mut(number as usize)?;
        let at = (id % Self::PAGE) as usize;
        let entry = page.cells.take(at, page.free)?;
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
                if let Some(spots) = &self.spots {
                    spots.publish(number, page);
                }
            } else {
                self.free_page(number);
            }
        }
        Some(entry)
    }

    #[inline]
    pub(crate) fn has_freed(&self) -> bool {
        !self.freed.is_empty()
    }

    #[inline]
    pub(crate) fn take_freed(&mut self) -> Option<FreedSlots<K, V>> {
        (!self.freed.is_empty()).then(|| FreedSlots(std::mem::take(&mut self.freed)))
    }

    /// From now on freed memory waits for [`Slots::take_freed`].
    pub(crate) fn defer_frees(&mut self) {
        self.defers_frees = true;
    }

    fn free_page(&mut self, number: u32) {
        let hole = Page {
            cells: Cells::none(),
            columns: None,
            free: FULL,
            used: 0,
        };
        let page = std::mem::replace(&mut self.pages[number as usize], hole);
        if let Some(spots) = &self.spots {
            spots.publish(number, &self.pages[number as usize]);
        }
        if self.defers_frees {
            self.freed.push(page.cells);
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
        let mut cells = Cells::vacant(Self::PAGE as u16, FULL, self.purpose);
        if number == 0 {
            // No entry has id 0: in the index it marks an empty place.
            cells.set_aside(0);
        }
        let page = Page {
            cells,
            columns: None,
            free: u16::from(number == 0),
            used: 0,
        };
        if let Some(hole) = self.pages.get_mut(number as usize) {
            *hole = page;
            self.holes.remove(number);
        } else {
            self.pages.push(page);
        }
        if let Some(spots) = &mut self.spots {
            spots.make_room(self.pages.len());
            spots.publish(number, &self.pages[number as usize]);
        }
        self.open.insert(number);
        self.live_pages += 1;
        number
    }

    /// An entry of the highest page, if a quarter of all slots is vacant and a lower page has room.
    /// Calls go on where the last one stopped, so a page is searched once from end to end.
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
        let cells = &self.pages[top as usize].cells;
        let at = (from as usize..cells.len()).find(|at| cells.get(*at).is_some())?;
        self.searched = first + at as u32;
        Some(self.searched)
    }

    /// Forgets the attributes of an entry; returns its weight and its label.
    #[inline]
    pub(crate) fn strip(&mut self, id: u32) -> (u32, u64) {
        match self.has_columns(id) {
            true => self.strip_columns(id),
            false => (1, 0),
        }
    }

    /// As [`strip`](Self::strip), of an entry whose page has attributes.
    #[inline(never)]
    pub(crate) fn strip_columns(&mut self, id: u32) -> (u32, u64) {
        let (columns, at, len) = self.columns_mut(id);
        let left = (columns.weight(at), columns.label.get(at));
        columns.set_version(at, 0, len);
        columns.write(at, &Attributes::default(), len);
        left
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
            (0..page.cells.len())
                .filter(|at| page.cells.get(*at).is_some())
                .map(move |at| number * Self::PAGE + at as u32)
        })
    }

    /// All entries, by value.
    pub(crate) fn into_entries(self) -> IntoSlots<K, V> {
        IntoSlots {
            pages: self.pages.into_iter(),
            cells: Cells::none(),
            at: 0,
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
        self.live_pages * Self::PAGE as usize * size_of::<Entry<K, V>>()
            + self.pages.capacity() * size_of::<Page<K, V>>()
            + self.open.bytes()
            + self.holes.bytes()
            + self.spots.as_ref().map_or(0, Spots::bytes)
            + columns
    }

    /// Panics if the structure is broken. O(n).
    pub(crate) fn validate(&self) {
        let mut len = 0;
        let mut live_pages = 0;
        for (number, page) in self.pages.iter().enumerate() {
            let is_live = |at: usize| page.cells.get(at).is_some();
            let live = (0..page.cells.len()).filter(|at| is_live(*at)).count();
            assert_eq!(live, usize::from(page.used), "entries of page {number}");
            len += live;
            live_pages += usize::from(!page.cells.is_empty());
            let mut free = 0;
            let mut at = page.free;
            while at != FULL {
                free += 1;
                at = page.cells.next_vacant(usize::from(at));
            }
            let reserved = usize::from(number == 0 && !page.cells.is_empty());
            assert_eq!(live + free + reserved, page.cells.len(), "slots leak");
        }
        if let Some(page) = self.pages.get((self.searched / Self::PAGE) as usize) {
            let before = (self.searched % Self::PAGE) as usize;
            let mut searched = 0..before.min(page.cells.len());
            assert!(
                searched.all(|at| page.cells.get(at).is_none()),
                "an entry is where none is looked for"
            );
        }
        assert_eq!(len, self.len, "entries");
        assert_eq!(live_pages, self.live_pages, "pages with memory");
    }
}

/// An entry's timer, if it has one.
#[inline(always)]
pub(super) fn timer_of<K, V>(entry: &Entry<K, V>) -> Option<Timer> {
    Some(Timer {
        deadline: entry.deadline()?,
        registration: u32::from(entry.registration()) << 8,
    })
}

impl<K, V> Timers for Slots<K, V> {
    // Quarters of a second: these bits tell in which of the last 65 s before its deadline a timer
    // is registered. So if it gets an earlier deadline which is still after that, the wheel need
    // not be told.
    const REGISTRATION_BITS: u32 = 0xff00;

    #[inline]
    fn timer(&self, id: u32) -> Option<Timer> {
        timer_of(self.get(id)?)
    }

    #[inline]
    fn set_registration(&mut self, id: u32, registration: u32) {
        if let Some(entry) = self.get(id) {
            entry.set_registration((registration >> 8) as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Keys = Slots<u32, ()>;

    /// Takes every slot of this many pages.
    fn fill_up(slots: &mut Keys, pages: usize) {
        // No entry has id 0.
        for key in slots.len() as u32..pages as u32 * Keys::PAGE - 1 {
            slots.allocate(Loose::new(key, (), 0));
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

    /// The search for entries goes on where it stopped. Slots before that point may have been taken
    /// meanwhile.
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
}
