//! Where a reader without a lock begins, and how it goes on.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, fence};

use super::block::{Block, Zeroed};
use super::cells::{Cells, Entry};
use super::limbo::{self, Pin};
use super::plain::is_plain;
use crate::index::{Bucket, First};
use crate::policy::Policy;
use crate::typed::page_slots;

/// Buckets after its home in which an entry is looked for.
const SPILL_MAX: usize = 8;

/// What readers find of one store. All its pointers lead to blocks that the store owns, or to nothing.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Roots {
    /// Odd while the store is being changed.
    sequence: AtomicU64,
    ways: AtomicPtr<Way>,
    spots: AtomicPtr<Spot>,
    /// There are `1 << depth` ways.
    depth: AtomicU32,
    spot_count: AtomicU32,
}

/// The way from a slot of the directory to the buckets of its segment.
#[derive(Debug)]
pub(crate) struct Way {
    /// Null if the segment has none.
    buckets: AtomicPtr<Bucket>,
    /// How many there are, and the segment's depth.
    count: AtomicU32,
    depth: AtomicU32,
}

/// The way from a page's number to its cells: null if it has no memory, or its entries have attributes.
#[derive(Debug)]
pub(crate) struct Spot(AtomicPtr<u8>);

// SAFETY: zeroed memory is a null pointer and numbers.
unsafe impl Zeroed for Way {}
// SAFETY: zeroed memory is a null pointer.
unsafe impl Zeroed for Spot {}
// SAFETY: it consists of numbers.
unsafe impl Zeroed for Bucket {}

impl Way {
    /// Leads to a segment's buckets from now on. Only within [`Roots::change`].
    pub(crate) fn lead(&self, buckets: &Block<Bucket>, depth: u8) {
        self.buckets.store(buckets.start(), Release);
        self.count.store(buckets.len() as u32, Relaxed);
        self.depth.store(u32::from(depth), Relaxed);
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
    /// Whether a change of the store has begun and not ended.
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

    /// Changes what pointers lead to. Readers rely on it that a pointer and its length belong together.
    pub(crate) fn change(&self, change: impl FnOnce()) {
        let is_within = self.is_changing();
        self.begin();
        change();
        if !is_within {
            self.end();
        }
    }

    pub(crate) fn lead_to_ways(&self, ways: &Block<Way>, depth: u8) {
        self.change(|| {
            self.ways.store(ways.start(), Release);
            self.depth.store(u32::from(depth), Relaxed);
        });
    }

    pub(crate) fn lead_to_spots(&self, spots: &Block<Spot>) {
        self.change(|| {
            self.spots.store(spots.start(), Release);
            self.spot_count.store(spots.len() as u32, Relaxed);
        });
    }

    /// Leads to nothing any more.
    pub(crate) fn clear(&self) {
        self.lead_to_ways(&Block::empty(), 0);
        self.lead_to_spots(&Block::empty());
    }

    /// Whether nothing has changed since the sequence had this number.
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
        let depth = self.depth.load(Acquire);
        if ways.is_null() || !self.is_at(sequence) {
            return First::Elsewhere;
        }
        // SAFETY:
        // - Pointer and depth belong together, so there are `1 << depth` ways, and that many this number is below.
        // - The block is not freed while the thread is pinned.
        let way = unsafe { &*ways.add((u64::from(place) << depth >> 32) as usize) };
        let buckets = way.buckets.load(Acquire);
        let count = way.count.load(Acquire) as usize;
        let depth = way.depth.load(Acquire);
        if buckets.is_null() || !self.is_at(sequence) {
            return First::Elsewhere;
        }
        // As `Segment::home`.
        let home = ((u64::from(place << depth) * count as u64) >> 32) as usize;
        // SAFETY:
        // - Pointer and count belong together, and the number is below the count.
        // - The block is not freed while the thread is pinned.
        let bucket = unsafe { &*buckets.add(home) };
        match bucket.likely(place) {
            Some(id) => First::Likely(id),
            // SAFETY: as before.
            None if bucket.is_full() => unsafe { Self::spilled(buckets, count, home, place) },
            None => First::Nowhere,
        }
    }

    /// The same, in the buckets after a full home bucket.
    ///
    /// # Safety
    ///
    /// The thread is pinned, and `buckets` leads to that many.
    #[inline(never)]
    unsafe fn spilled(buckets: *const Bucket, count: usize, home: usize, place: u32) -> First {
        let mut at = home;
        for _ in 0..SPILL_MAX {
            at = if at + 1 == count { 0 } else { at + 1 };
            // SAFETY: as demanded; the number is below the count.
            let bucket = unsafe { &*buckets.add(at) };
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
        // SAFETY: pointer and count belong together, and the block is not freed while the thread is pinned.
        let spot = unsafe { &*spots.add((id / slots) as usize) };
        let cells = spot.0.load(Acquire).cast::<Entry<K, V>>();
        if cells.is_null() {
            return std::ptr::null();
        }
        // SAFETY: a page has this many cells. It is not freed while the thread is pinned.
        unsafe { cells.add((id % slots) as usize) }
    }
}

/// What a look without a lock has shown.
#[derive(Debug)]
pub enum Glimpse<K, V> {
    /// The first entry that may be the key's, which outlasts the tick that was asked for: if its key is another one,
    /// the key's entry may be elsewhere.
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
    /// Whether key and value may be copied while they are changed. The compiler knows the answer, if it optimises.
    #[inline(always)]
    #[must_use]
    pub fn suits() -> bool {
        is_plain::<K>() && is_plain::<V>()
    }

    /// Whether there can be one: the types suit, and the system can make other threads' stores visible.
    pub(crate) fn is_possible() -> bool {
        Self::suits() && limbo::is_possible()
    }

    pub(crate) fn of(roots: &Arc<Roots>) -> Self {
        Self(Arc::clone(roots), PhantomData)
    }

    /// Looks for an entry that has no attributes, and whose deadline is after the tick that `bound` returns, and counts a
    /// hit. `bound` is called before the entry is looked at, and not if there is none. If it may take its time, the thread
    /// `lets_go` meanwhile: what others free then need not wait for it. O(1).
    #[inline(always)]
    #[must_use]
    pub fn glimpse(&self, place: u32, lets_go: bool, bound: impl FnOnce() -> u64) -> Glimpse<K, V> {
        if !Self::suits() {
            return Glimpse::Unclear;
        }
        let Some(pin) = Pin::enter() else {
            return Glimpse::Unclear;
        };
        let roots = &*self.0;
        let sequence = roots.sequence.load(Acquire);
        if sequence & 1 == 1 {
            return Glimpse::Unclear;
        }
        // SAFETY: the thread is pinned.
        let id = match unsafe { roots.id(place, sequence) } {
            First::Likely(id) => id,
            First::Nowhere if roots.is_at(sequence) => return Glimpse::Nowhere,
            First::Nowhere | First::Elsewhere => return Glimpse::Unclear,
        };
        // The id stays right while the sequence does. So nothing is lost if the thread lets go.
        let pin = (!lets_go).then_some(pin);
        let bound = bound();
        let Some(_pin) = pin.or_else(Pin::enter) else {
            return Glimpse::Unclear;
        };
        // SAFETY: the thread is pinned. A lens of `(K, V)` is made of a store of them.
        let slot = unsafe { roots.slot::<K, V>(id, sequence) };
        if slot.is_null() {
            return Glimpse::Unclear;
        }
        // SAFETY: the slot's memory is valid while the thread is pinned. All that is used of it is atomic.
        let slot = unsafe { &*slot };
        let (is_alive, state) = (slot.lasts_past(bound), slot.policy());
        // SAFETY: both types are plain.
        let (key, value) = unsafe { slot.glimpse() };
        if !is_alive || !roots.is_at(sequence) {
            return Glimpse::Unclear;
        }
        if let Some(next) = Policy::hit(state) {
            slot.hit(state, next);
        }
        Glimpse::Entry(key, value)
    }
}
