//! The slot of an entry.

/// Where an entry is in a store. Valid until the next call that takes `&mut self`. Some of those
/// calls return the entry's new slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot(pub(crate) u32);

impl Slot {
    /// The slot as a number, for a table beside the store.
    #[inline]
    #[must_use]
    pub fn to_bits(self) -> u32 {
        self.0
    }

    /// The slot of this number. Whoever keeps numbers must know that their entries have not moved
    /// or gone.
    #[inline]
    #[must_use]
    pub fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}
