//! Random choices, from random bits that the caller brings.

/// A number below `bound`, from 64 random bits. For the bounds of a collection no number is
/// favoured noticeably: by less than one part in 2^32.
pub(crate) fn below(bits: u64, bound: usize) -> usize {
    ((u128::from(bits) * bound as u128) >> 64) as usize
}

/// Chooses `wanted` of `left` things that come one after the other, all subsets alike.
///
/// Source: Knuth, "The Art of Computer Programming", volume 2, algorithm S.
pub(crate) struct Selection {
    pub(crate) left: usize,
    pub(crate) wanted: usize,
}

impl Selection {
    /// Returns whether the next thing is chosen.
    pub(crate) fn takes(&mut self, bits: impl FnOnce() -> u64) -> bool {
        if self.wanted == 0 {
            return false;
        }
        let takes = below(bits(), self.left) < self.wanted;
        self.left -= 1;
        self.wanted -= usize::from(takes);
        takes
    }
}
