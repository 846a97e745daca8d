//! The roots of a store: readers without a lock begin here, and follow them to an entry.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, fence};

use super::block::{Block, Purpose, Zeroed};
use super::cells::{Cells, Entry};
use super::limbo::Pin;
use super::plain::{are_listed, may_be_told};
use crate::index::{Bucket, First};
use crate::policy::Policy;
use crate::typed::page_slots;

/// Buckets after its home in which an entry is looked for.
const SPILL_MAX: usize = 8;

/// The pointers and numbers that readers find of one store. All its pointers lead to blocks that
/// the store owns, or to nothing.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Roots {
    /// Odd while the store is being changed.
    sequence: AtomicU64,
    /// Where the ways are. The address's lowest bits, which would be 0, are the directory's depth:
    /// there are `1 << depth` ways, and as many [detours](Way::detour) after them.
    ways: AtomicPtr<Way>,
    spots: AtomicPtr<Spot>,
    spot_count: AtomicU32,
}

/// The way from a slot of the directory to the buckets of its segment, which takes one
/// multiplication.
///
/// An example: all places of a segment of 5 buckets begin with `10`. Multiplied by 5 × 4 they are
/// numbers from 10 × 2^32 to 15 × 2^32. So their upper halves, 10 to 14, number its buckets, if one
/// counts from ten buckets before its first.
#[derive(Debug)]
pub(crate) struct Way {
    /// The bucket that has the number 0: `start * scale >> 32` buckets before the segment's first
    /// one.
    buckets: AtomicPtr<Bucket>,
    /// The number of buckets, times 2^depth of the segment. 0 if there are none.
    scale: AtomicU64,
}

/// Four ways: a cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Ways([Way; Self::LEN]);

/// The way from a page's number to its cells: null if it has no memory, or its entries have
/// attributes.
#[derive(Debug)]
pub(crate) struct Spot(AtomicPtr<u8>);

// SAFETY: zeroed memory is null pointers and numbers.
unsafe impl Zeroed for Ways {}
// SAFETY: zeroed memory is a null pointer.
unsafe impl Zeroed for Spot {}
// SAFETY: it consists of numbers.
unsafe impl Zeroed for Bucket {}

/// Where stores lead to that have no ways.
static NO_WAYS: Ways = Ways([const { Way::none() }; Ways::LEN]);

impl Way {
    const fn none() -> Self {
        Self {
            buckets: AtomicPtr::new(std::ptr::null_mut()),
            scale: AtomicU64::new(0),
        }
    }

    /// Leads to a segment's buckets from now on. `start` is its least place. Only within
    /// [`Roots::change`].
    pub(crate) fn lead(&self, buckets: &Block<Bucket>, start: u32, depth: u8) {
        let scale = (buckets.len() as u64) << depth;
        let before = ((u64::from(start) * scale) >> 32) as usize;
        self.set(buckets.start().wrapping_sub(before), scale);
    }

    /// Becomes the way of those who must go on behind a full bucket: to the segment's first one,
    /// and how many there are.
    pub(crate) fn detour(&self, buckets: &Block<Bucket>) {
        self.set(buckets.start(), buckets.len() as u64);
    }

    fn set(&self, buckets: *mut Bucket, scale: u64) {
        self.buckets.store(buckets, Release);
        self.scale.store(scale, Relaxed);
    }
}

impl Ways {
    const LEN: usize = 4;

    /// Vacant ones, for a directory of this many slots: a way and a detour for each.
    pub(crate) fn zeroed(slots: usize) -> Block<Self> {
        Block::zeroed((slots * 2).div_ceil(Self::LEN), Purpose::SHARED)
    }

    pub(crate) fn at(lines: &Block<Self>, i: usize) -> &Way {
        &lines[i / Self::LEN].0[i % Self::LEN]
    }
}

impl Default for Roots {
    fn default() -> Self {
        let roots = Self {
            sequence: AtomicU64::new(0),
            ways: AtomicPtr::default(),
            spots: AtomicPtr::default(),
            spot_count: AtomicU32::new(0),
        };
        roots.clear();
        roots
    }
}

impl Spot {
    pub(crate) fn lead<K, V>(&self, cells: Option<&Cells<K, V>>) {
        let cells = cells.map_or(std::ptr::null_mut(), Cells::start);
        self.0.store(cells, Release);
    }

    pub(crate) fn copy(&self, other: &Self) {
        self.0.store(other.0.load(Relaxed), Release);
    }
}

impl Roots {
    /// Returns whether a change of the store has begun and not ended.
    pub(crate) fn is_changing(&self) -> bool {
        self.sequence.load(Relaxed) & 1 == 1
    }

    /// A change begins: only for whoever has the store to itself.
    #[inline(always)]
    pub(crate) fn begin(&self) {
        let sequence = self.sequence.load(Relaxed);
        self.sequence.store(sequence | 1, Relaxed);
        fence(Release);
    }

    #[inline(always)]
    pub(crate) fn end(&self) {
        let sequence = self.sequence.load(Relaxed);
        self.sequence.store((sequence | 1).wrapping_add(1), Release);
    }

    /// Changes what pointers lead to. Readers rely on it that a pointer and its length belong
    /// together.
    pub(crate) fn change(&self, change: impl FnOnce()) {
        let is_within = self.is_changing();
        self.begin();
        change();
        if !is_within {
            self.end();
        }
    }

    pub(crate) fn lead_to_ways(&self, ways: &Block<Ways>, depth: u8) {
        let start = ways.start().cast::<Way>();
        let start = start.map_addr(|at| at | usize::from(depth));
        self.change(|| self.ways.store(start, Release));
    }

    pub(crate) fn lead_to_spots(&self, spots: &Block<Spot>) {
        self.change(|| {
            self.spots.store(spots.start(), Release);
            self.spot_count.store(spots.len() as u32, Relaxed);
        });
    }

    /// Leads to nothing any more.
    pub(crate) fn clear(&self) {
        let nowhere = (&raw const NO_WAYS).cast_mut().cast();
        self.change(|| self.ways.store(nowhere, Release));
        self.lead_to_spots(&Block::empty());
    }

    /// Returns whether nothing has changed since the sequence had this number.
    #[inline(always)]
    fn is_at(&self, sequence: u64) -> bool {
        fence(Acquire);
        self.sequence.load(Relaxed) == sequence
    }

    /// The id of the first entry that may be of a place.
    ///
    /// # Safety
    ///
    /// The thread is pinned.
    #[inline(always)]
    unsafe fn id(&self, place: u32, sequence: u64) -> First {
        let ways = self.ways.load(Acquire);
        let depth = (ways.addr() % align_of::<Ways>()) as u32;
        let ways = ways.map_addr(|at| at & !(align_of::<Ways>() - 1));
        // A shift by that many bits needs no mask.
        let slot = (u64::from(place).wrapping_shl(depth) >> 32) as usize;
        // SAFETY:
        // - There are `1 << depth` ways, and that many this number is below.
        // - The block is not freed while the thread is pinned.
        let way = unsafe { &*ways.add(slot) };
        let buckets = way.buckets.load(Acquire);
        let scale = way.scale.load(Acquire);
        if scale == 0 || !self.is_at(sequence) {
            return First::Elsewhere;
        }
        let home = ((u64::from(place) * scale) >> 32) as usize;
        // SAFETY:
        // - Pointer and scale belong together, and the way is the place's. So this is one of the
        //   segment's buckets.
        // - The block is not freed while the thread is pinned.
        let bucket = unsafe { &*buckets.wrapping_add(home) };
        match bucket.likely(place) {
            Some(id) => First::Likely(id),
            None if bucket.is_full() => {
                // SAFETY: there are as many detours as ways, and after them.
                let detour = unsafe { &*ways.add(slot + (1 << depth)) };
                // SAFETY: the thread is pinned, and the bucket is one of those that the detour
                // leads to.
                unsafe { self.spilled(detour, bucket, place, sequence) }
            }
            None => First::Nowhere,
        }
    }

    /// The same, in the buckets after a full home bucket.
    ///
    /// # Safety
    ///
    /// The thread is pinned. If the sequence still has this number, `home` is one of the buckets
    /// that the detour leads to.
    #[inline(never)]
    unsafe fn spilled(
        &self,
        detour: &Way,
        home: *const Bucket,
        place: u32,
        sequence: u64,
    ) -> First {
        let first = detour.buckets.load(Acquire).cast_const();
        let count = detour.scale.load(Acquire) as usize;
        if !self.is_at(sequence) {
            return First::Elsewhere;
        }
        let end = first.wrapping_add(count);
        let mut at = home;
        for _ in 0..SPILL_MAX {
            at = at.wrapping_add(1);
            if at == end {
                at = first;
            }
            // SAFETY: pointer and count belong together, and this is one of the buckets. They are
            // not freed while the thread is pinned.
            let bucket = unsafe { &*at };
            match bucket.likely(place) {
                Some(id) => return First::Likely(id),
                None if bucket.is_full() => {}
                None => return First::Nowhere,
            }
        }
        First::Elsewhere
    }

    /// The slot of an id; null if only the way of the lock leads there.
    ///
    /// # Safety
    ///
    /// The thread is pinned, and stays so while the slot is used. The store is one of `(K, V)`.
    #[inline(always)]
    unsafe fn slot<K, V>(&self, id: u32, sequence: u64) -> *const Entry<K, V> {
        let slots = page_slots::<K, V>();
        let spots = self.spots.load(Acquire);
        let count = self.spot_count.load(Acquire);
        if id / slots >= count || !self.is_at(sequence) {
            return std::ptr::null();
        }
        // SAFETY: pointer and count belong together, and the block is not freed while the thread is
        // pinned.
        let spot = unsafe { &*spots.add((id / slots) as usize) };
        let cells = spot.0.load(Acquire).cast::<Entry<K, V>>();
        if cells.is_null() {
            return std::ptr::null();
        }
        // SAFETY: a page has this many cells. It is not freed while the thread is pinned.
        unsafe { cells.add((id % slots) as usize) }
    }
}

/// The result of a read without a lock.
#[derive(Debug)]
pub enum OptimisticRead<K, V> {
    /// The first entry that may be the key's, which outlasts the tick that was asked for: if its
    /// key is another one, the key's entry may be elsewhere.
    Entry(K, V),
    /// There is none.
    Nowhere,
    /// It takes the lock to know.
    Unclear,
}

/// Looks into a store without its lock. Made by [`TypedStore::lens`](crate::TypedStore::lens).
#[derive(Debug)]
pub struct Lens<K, V>(Arc<Roots>, PhantomData<fn() -> (K, V)>);

impl<K, V> Lens<K, V> {
    /// Returns whether a read without a lock is worth while. The compiler knows the answer, if it
    /// optimises, except for types that a caller may have declared plain: then it is whether there
    /// is a lens.
    #[inline(always)]
    #[must_use]
    pub fn suits<'a>(lens: impl FnOnce() -> Option<&'a Self>) -> bool
    where
        Self: 'a,
    {
        are_listed::<K, V>() || may_be_told::<K, V>() && lens().is_some()
    }

    /// Only of a store whose keys and values are plain.
    pub(crate) fn of(roots: &Arc<Roots>) -> Self {
        Self(Arc::clone(roots), PhantomData)
    }

    /// Looks for an entry that has no attributes and whose deadline is ahead, and counts a hit.
    /// O(1).
    ///
    /// `clock` reads the time and returns what tells whether a deadline is ahead: of two deadlines
    /// the later one is, if the earlier one is. It is called between the two waits for memory, so
    /// that the processor need not do it before or after them; and not, if there is no entry. If it
    /// may take its time, the thread `lets_go` meanwhile: what others free then need not wait for
    /// it.
    #[inline(always)]
    #[must_use]
    pub fn read<A: Fn(u64) -> bool>(
        &self,
        place: u32,
        lets_go: bool,
        clock: impl FnOnce() -> A,
    ) -> OptimisticRead<K, V> {
        if !Self::suits(|| Some(self)) {
            return OptimisticRead::Unclear;
        }
        let roots = &*self.0;
        let Some(pin) = Pin::enter() else {
            return OptimisticRead::Unclear;
        };
        let sequence = roots.sequence.load(Acquire);
        if sequence & 1 == 1 {
            return OptimisticRead::Unclear;
        }
        // SAFETY: the thread is pinned.
        let id = match unsafe { roots.id(place, sequence) } {
            First::Likely(id) => id,
            First::Nowhere if roots.is_at(sequence) => return OptimisticRead::Nowhere,
            First::Nowhere | First::Elsewhere => return OptimisticRead::Unclear,
        };
        // The id stays right while the sequence does. So nothing is lost if the thread lets go.
        let pin = (!lets_go).then_some(pin);
        let is_ahead = clock();
        let Some(_pin) = pin.or_else(Pin::enter) else {
            return OptimisticRead::Unclear;
        };
        // SAFETY: the thread is pinned. A lens of `(K, V)` is made of a store of them.
        let slot = unsafe { roots.slot::<K, V>(id, sequence) };
        if slot.is_null() {
            return OptimisticRead::Unclear;
        }
        // SAFETY: the slot's memory is valid while the thread is pinned. All that is used of it is
        // atomic.
        let slot = unsafe { &*slot };
        let (is_alive, state) = (slot.lasts(is_ahead), slot.policy());
        // The index leads to entries only, and a vacant pair in it to a slot whose time is over.
        // Where zeros may be no value, that is not relied on.
        if !are_listed::<K, V>() && !slot.is_live() {
            return OptimisticRead::Unclear;
        }
        // SAFETY: both types are plain, or there were no lens.
        let (key, value) = unsafe { slot.copy_out() };
        if !is_alive || !roots.is_at(sequence) {
            return OptimisticRead::Unclear;
        }
        // SAFETY:
        // - Nothing was written meanwhile, since `Slots` writes types that are not listed only
        //   while the sequence is odd.
        // - So they are what was written last, for the slot has an entry; or zeros if nothing ever
        //   was, and both are listed.
        let (key, value) = unsafe { (key.assume_init(), value.assume_init()) };
        if let Some(next) = Policy::hit(state) {
            slot.hit(state, next);
        }
        OptimisticRead::Entry(key, value)
    }
}
