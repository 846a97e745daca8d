//! One cache line of the index: eight places and the ids that belong to them.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Pairs of a bucket: one cache line.
pub(super) const WORDS: usize = 8;

/// Eight ids and their places. Pairs are packed to the front; an id of 0 marks a vacant one, whose place is 0 too.
/// A vacant bucket is zeroed memory. Readers without a lock may look at it, so it consists of atomics.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Bucket {
    ids: [AtomicU32; WORDS],
    /// Two places each, the one with the even number in the lower half: half as many loads compare them all.
    places: [AtomicU64; WORDS / 2],
}

impl Bucket {
    #[inline(always)]
    pub(super) fn id(&self, i: usize) -> u32 {
        self.ids[i].load(Relaxed)
    }

    #[inline]
    pub(super) fn set_id(&self, i: usize, id: u32) {
        self.ids[i].store(id, Relaxed);
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.id(WORDS - 1) != 0
    }

    /// How many pairs there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        // They are packed: a search in three steps.
        let mut len = usize::from(self.id(3) != 0) * 4;
        len += usize::from(self.id(len + 1) != 0) * 2;
        len += usize::from(self.id(len) != 0);
        len + usize::from(self.is_full())
    }

    #[inline]
    pub(super) fn pair(&self, i: usize) -> Pair {
        let two = self.places[i / 2].load(Relaxed);
        Pair {
            place: (two >> (32 * (i % 2))) as u32,
            id: self.id(i),
        }
    }

    #[inline]
    pub(super) fn set(&self, i: usize, pair: Pair) {
        let shift = 32 * (i % 2);
        let two = &self.places[i / 2];
        let other = two.load(Relaxed) & !(u64::from(u32::MAX) << shift);
        two.store(other | u64::from(pair.place) << shift, Relaxed);
        self.set_id(i, pair.id);
    }

    #[inline(always)]
    fn places(&self) -> [u64; WORDS / 2] {
        let [a, b, c, d] = &self.places;
        [a, b, c, d].map(|two| two.load(Relaxed))
    }

    /// The first pair of this place whose id is one that `is` accepts.
    #[inline]
    pub(super) fn find(&self, place: u32, mut is: impl FnMut(u32) -> bool) -> Option<usize> {
        let mut equal = equal(self.places(), place);
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

    /// The id of the first pair of this place. If the place is 0, it may be a vacant one's, which is 0.
    #[inline(always)]
    pub(crate) fn likely(&self, place: u32) -> Option<u32> {
        let equal = equal(self.places(), place);
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

/// Which places are the one that is looked for: two bits for each, the first place's lowest.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn equal(places: [u64; WORDS / 2], place: u32) -> u32 {
    use safe_arch::{
        cmp_eq_mask_i32_m128i, m128i, move_mask_i8_m128i, pack_i32_to_i16_m128i,
        set_splat_i32_m128i,
    };
    let [a, b, c, d] = places;
    let wanted = set_splat_i32_m128i(place as i32);
    let equal = |four: [u64; 2]| cmp_eq_mask_i32_m128i(m128i::from(four), wanted);
    let equal = pack_i32_to_i16_m128i(equal([a, b]), equal([c, d]));
    move_mask_i8_m128i(equal) as u32
}

/// Which places are the one that is looked for: two bits for each, the first place's lowest.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn equal(places: [u64; WORDS / 2], place: u32) -> u32 {
    equal_one_by_one(places, place)
}

/// As [`equal`], for processors whose vectors nothing here knows.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
fn equal_one_by_one(places: [u64; WORDS / 2], place: u32) -> u32 {
    let bits = |i: usize| {
        let one = (places[i / 2] >> (32 * (i % 2))) as u32;
        u32::from(one == place) * (3 << (2 * i))
    };
    (0..WORDS).fold(0, |equal, i| equal | bits(i))
}

/// The first place of those that are [`equal`].
#[inline(always)]
fn first(equal: u32) -> usize {
    // Of eight: that needs no test.
    equal.trailing_zeros() as usize / 2 % WORDS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(places: [u32; WORDS]) -> [u64; WORDS / 2] {
        std::array::from_fn(|i| u64::from(places[2 * i]) | u64::from(places[2 * i + 1]) << 32)
    }

    #[test]
    fn places_are_equal_in_all_32_bits_or_not_at_all() {
        let some = [
            0,
            1,
            1 << 8,
            1 << 16,
            1 << 31,
            u32::MAX,
            u32::MAX - 1,
            1 << 15,
        ];
        for rotation in 0..WORDS {
            let mut places = some;
            places.rotate_left(rotation);
            for (i, place) in places.into_iter().enumerate() {
                assert_eq!(equal(packed(places), place), 3 << (2 * i));
                assert_eq!(first(equal(packed(places), place)), i);
                assert_eq!(equal(packed(places), place ^ 2), 0);
                assert_eq!(equal_one_by_one(packed(places), place), 3 << (2 * i));
            }
        }
        assert_eq!(equal(packed([7; WORDS]), 7), 0xffff);
        assert_eq!(equal_one_by_one(packed([7; WORDS]), 7), 0xffff);
    }
}
