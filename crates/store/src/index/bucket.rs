//! One cache line of the index: eight places and the ids that belong to them.

/// Pairs of a bucket: one cache line.
pub(super) const WORDS: usize = 8;

/// Eight ids and their places. The places are cut into low byte, middle byte and high half, so that the eight low
/// bytes make one word, and are compared at once. Pairs are packed to the front; an id of 0 marks a vacant one.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Bucket {
    pub(super) ids: [u32; WORDS],
    low: [u8; WORDS],
    middle: [u8; WORDS],
    high: [u16; WORDS],
}

pub(super) const EMPTY: Bucket = Bucket {
    ids: [0; WORDS],
    low: [0; WORDS],
    middle: [0; WORDS],
    high: [0; WORDS],
};

/// One in every byte.
const ONES: u64 = u64::MAX / 0xff;

/// Finds the bytes of `word` that equal `byte`: in the result their highest bits are set. The byte above an equal one
/// may be reported too if it differs by one. The caller compares more of the place anyway.
#[inline]
fn equal_bytes(word: u64, byte: u8) -> u64 {
    let differs = word ^ (ONES * u64::from(byte));
    differs.wrapping_sub(ONES) & !differs & (ONES << 7)
}

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
        let (low, middle) = (self.low[i], self.middle[i]);
        Pair {
            place: u32::from(self.high[i]) << 16 | u32::from(middle) << 8 | u32::from(low),
            id: self.ids[i],
        }
    }

    #[inline]
    pub(super) fn set(&mut self, i: usize, pair: Pair) {
        self.low[i] = pair.place as u8;
        self.middle[i] = (pair.place >> 8) as u8;
        self.high[i] = (pair.place >> 16) as u16;
        self.ids[i] = pair.id;
    }

    /// The first pair of this place whose id is one that `is` accepts.
    #[inline]
    pub(super) fn find(&self, place: u32, mut is: impl FnMut(u32) -> bool) -> Option<usize> {
        let mut found = equal_bytes(u64::from_le_bytes(self.low), place as u8);
        while found != 0 {
            // Of eight: that needs no test.
            let i = found.trailing_zeros() as usize / 8 % WORDS;
            let id = self.ids[i];
            // A vacant cell shows any place.
            if self.high[i] == (place >> 16) as u16 && id != 0 && is(id) {
                return Some(i);
            }
            found &= found - 1;
        }
        None
    }

    /// Takes a pair out; the last one moves to its place.
    #[inline]
    pub(super) fn take(&mut self, i: usize) {
        let last = self.len() - 1;
        self.set(i, self.pair(last));
        self.ids[last] = 0;
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
