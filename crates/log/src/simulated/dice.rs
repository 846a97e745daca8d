//! Random numbers that a seed repeats.

/// A stream of random numbers (SplitMix64): the same ones for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`; 0 if there is none.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.number().checked_rem(end).unwrap_or(0)
    }

    /// Whether something happens that does so once in `n` times; never for 0.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        n > 0 && self.below(n) == 0
    }
}
