//! The summed weight of a region's entries.

/// A sum of weights.
#[derive(Debug, Default)]
pub(super) struct Weight(u64);

impl Weight {
    #[inline]
    pub(super) fn total(&self) -> u64 {
        self.0
    }

    #[inline]
    pub(super) fn add(&mut self, weight: u32) {
        self.0 += u64::from(weight);
    }

    /// If a release build finds the sum too small, it goes on with 0. Then the regions' shares are
    /// wrong, but nothing else is.
    #[inline]
    pub(super) fn subtract(&mut self, weight: u32) {
        let weight = u64::from(weight);
        debug_assert!(self.0 >= weight, "a region weighs less than its entries");
        self.0 = self.0.saturating_sub(weight);
    }

    /// An entry weighs `new` now, and no longer `old`.
    #[inline]
    pub(super) fn reweighed(&mut self, old: u32, new: u32) {
        self.subtract(old);
        self.add(new);
    }
}
