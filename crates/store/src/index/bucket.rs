//! One cache line of the index: eight places and the ids that belong to them.

use crate::shared::{LANES, Lanes, first};

/// Pairs of a bucket: one cache line.
pub(super) const WORDS: usize = LANES;

/// Eight ids and their places. Pairs are packed to the front; an id of 0 marks a vacant one, whose
/// place is 0 too. A vacant bucket is zeroed memory. Readers without a lock may look at it, so it
/// consists of atomics.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Bucket {
    places: Lanes,
    ids: Lanes,
}

impl Bucket {
    #[inline(always)]
    pub(super) fn id(&self, i: usize) -> u32 {
        self.ids.get(i)
    }

    #[inline]
    pub(super) fn set_id(&self, i: usize, id: u32) {
        self.ids.set(i, id);
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.id(WORDS - 1) != 0
    }

    /// The first vacant pair.
    #[inline]
    pub(super) fn vacant(&self) -> Option<usize> {
        if self.is_full() {
            return None;
        }
        // They are packed: a search in three steps.
        let mut len = usize::from(self.id(3) != 0) * 4;
        len += usize::from(self.id(len + 1) != 0) * 2;
        len += usize::from(self.id(len) != 0);
        Some(len)
    }

    /// Returns the number of pairs.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.vacant().unwrap_or(WORDS)
    }

    #[inline]
    pub(super) fn pair(&self, i: usize) -> Pair {
        Pair {
            place: self.places.get(i),
            id: self.ids.get(i),
        }
    }

    #[inline]
    pub(super) fn set(&self, i: usize, pair: Pair) {
        self.places.set(i, pair.place);
        self.ids.set(i, pair.id);
    }

    /// The first pair of this place whose id is one that `is` accepts.
    #[inline]
    pub(super) fn find(&self, place: u32, mut is: impl FnMut(u32) -> bool) -> Option<usize> {
        let mut equal = self.places.equal(place);
        while equal != 0 {
            let i = first(equal);
            // A vacant one looks like one of place 0.
            let id = self.id(i);
            if id != 0 && is(id) {
                return Some(i);
            }
            equal &= !(3 << (2 * i));
        }
        None
    }

    /// The id of the first pair of this place. If the place is 0, it may be a vacant one's, which
    /// is 0: the slot of that id has no entry, ever.
    #[inline(always)]
    pub(crate) fn likely(&self, place: u32) -> Option<u32> {
        let equal = self.places.equal(place);
        (equal != 0).then(|| self.id(first(equal)))
    }

    /// Takes a pair out; the last one moves to its place.
    #[inline]
    pub(super) fn take(&self, i: usize) {
        let last = self.len() - 1;
        self.set(i, self.pair(last));
        self.set(last, Pair { place: 0, id: 0 });
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = Pair> {
        (0..self.len()).map(|i| self.pair(i))
    }
}

/// An entry as the index knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) place: u32,
    pub(super) id: u32,
}
