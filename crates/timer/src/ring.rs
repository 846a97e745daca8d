//! One level of the hierarchical wheel: 512 slots, each with a chain of records, and a bit for each
//! that has one.

use crate::pool::NIL;

/// Slots of a level. Twice the 256 slots that make one slot of the next level, so that the next
/// level's coming slot can be split ahead of time.
pub(crate) const SLOTS: usize = 512;

/// The slots of one level.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) heads: [u32; SLOTS],
    /// Records filed in each slot, dead ones included.
    pub(crate) counts: [u32; SLOTS],
    occupied: [u64; SLOTS / 64],
    /// Records in the whole level.
    pub(crate) records: usize,
}

impl Ring {
    pub(crate) fn new() -> Self {
        Self {
            heads: [NIL; SLOTS],
            counts: [0; SLOTS],
            occupied: [0; SLOTS / 64],
            records: 0,
        }
    }

    #[inline]
    pub(crate) fn added(&mut self, slot: usize) {
        self.counts[slot] += 1;
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.records += 1;
    }

    #[inline]
    pub(crate) fn removed(&mut self, slot: usize, count: u32) {
        self.counts[slot] -= count;
        self.records -= count as usize;
        if self.counts[slot] == 0 {
            self.occupied[slot / 64] &= !(1 << (slot % 64));
        }
    }

    /// Returns how many slots after `from` the first occupied one comes, round the ring; 0 for
    /// `from` itself.
    #[inline]
    pub(crate) fn distance(&self, from: usize) -> Option<u64> {
        if self.records == 0 {
            return None;
        }
        let (word, bit) = (from / 64, from % 64);
        let first = self.occupied[word] >> bit;
        if first != 0 {
            return Some(u64::from(first.trailing_zeros()));
        }
        for i in 1..=SLOTS / 64 {
            let bits = self.occupied[(word + i) % (SLOTS / 64)];
            if bits != 0 {
                return Some((i * 64 - bit) as u64 + u64::from(bits.trailing_zeros()));
            }
        }
        None
    }

    pub(crate) fn is_occupied(&self, slot: usize) -> bool {
        self.occupied[slot / 64] >> (slot % 64) & 1 == 1
    }
}
