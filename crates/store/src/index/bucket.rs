//! One cache line of the index: eight places and the ids that belong to them.

/// Pairs of a bucket: one cache line.
pub(super) const WORDS: usize = 8;

/// Eight ids and their places. Pairs are packed to the front; an id of 0 marks a vacant one, whose place is 0 too.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Bucket {
    pub(super) ids: [u32; WORDS],
    places: [u32; WORDS],
}

pub(super) const EMPTY: Bucket = Bucket {
    ids: [0; WORDS],
    places: [0; WORDS],
};

impl Bucket {
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.ids[WORDS - 1] != 0
    }

    /// How many pairs there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        // They are packed: a search in three steps.
        let mut len = usize::from(self.ids[3] != 0) * 4;
        len += usize::from(self.ids[len + 1] != 0) * 2;
        len += usize::from(self.ids[len] != 0);
        len + usize::from(self.is_full())
    }

    #[inline]
    pub(super) fn pair(&self, i: usize) -> Pair {
        Pair {
            place: self.places[i],
            id: self.ids[i],
        }
    }

    #[inline]
    pub(super) fn set(&mut self, i: usize, pair: Pair) {
        self.places[i] = pair.place;
        self.ids[i] = pair.id;
    }

    /// The first pair of this place whose id is one that `is` accepts.
    #[inline]
    pub(super) fn find(&self, place: u32, mut is: impl FnMut(u32) -> bool) -> Option<usize> {
        let mut equal = equal(&self.places, place);
        while equal != 0 {
            let i = first(equal);
            // A vacant one looks like one of place 0.
            if self.ids[i] != 0 && is(self.ids[i]) {
                return Some(i);
            }
            equal &= !(3 << (2 * i));
        }
        None
    }

    /// The id of the first pair of this place. If the place is 0, it may be a vacant one's, which is 0.
    #[inline(always)]
    pub(super) fn likely(&self, place: u32) -> Option<u32> {
        let equal = equal(&self.places, place);
        (equal != 0).then(|| self.ids[first(equal)])
    }

    /// Takes a pair out; the last one moves to its place.
    #[inline]
    pub(super) fn take(&mut self, i: usize) {
        let last = self.len() - 1;
        self.set(i, self.pair(last));
        self.set(last, Pair { place: 0, id: 0 });
    }

    pub(super) fn pairs(self) -> impl Iterator<Item = Pair> {
        (0..self.len()).map(move |i| self.pair(i))
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
fn equal(places: &[u32; WORDS], place: u32) -> u32 {
    use safe_arch::{
        cmp_eq_mask_i32_m128i, m128i, move_mask_i8_m128i, pack_i32_to_i16_m128i,
        set_splat_i32_m128i,
    };
    let [a, b, c, d, e, f, g, h] = *places;
    let wanted = set_splat_i32_m128i(place as i32);
    let equal = |four: [u32; 4]| cmp_eq_mask_i32_m128i(m128i::from(four), wanted);
    let equal = pack_i32_to_i16_m128i(equal([a, b, c, d]), equal([e, f, g, h]));
    move_mask_i8_m128i(equal) as u32
}

/// Which places are the one that is looked for: two bits for each, the first place's lowest.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn equal(places: &[u32; WORDS], place: u32) -> u32 {
    equal_one_by_one(places, place)
}

/// As [`equal`], for processors whose vectors nothing here knows.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
fn equal_one_by_one(places: &[u32; WORDS], place: u32) -> u32 {
    let bits = |i: usize| u32::from(places[i] == place) * (3 << (2 * i));
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
                assert_eq!(equal(&places, place), 3 << (2 * i));
                assert_eq!(first(equal(&places, place)), i);
                assert_eq!(equal(&places, place ^ 2), 0);
                assert_eq!(equal_one_by_one(&places, place), 3 << (2 * i));
            }
        }
        assert_eq!(equal(&[7; WORDS], 7), 0xffff);
        assert_eq!(equal_one_by_one(&[7; WORDS], 7), 0xffff);
    }
}
