//! The four bits of state that the policy keeps in each entry: its region, and its hits.

/// The bits of a state that count hits. They count down, so that a single test tells a hit that it
/// has nothing to write.
const HITS: u8 = 0b11;
/// A hit beyond this count writes nothing.
#[cfg(test)]
pub(super) const MAX_HITS: u8 = 3;
/// Where a state keeps its region.
const REGION_SHIFT: u32 = 2;

/// Where an entry is. For an entry that the hand has not come to yet, also how it came to the main
/// region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Region {
    Probation,
    Main,
    /// In the main region: it moved up from probation, and the hand has not come to it yet.
    Promoted,
    /// In the main region: a ghost brought it back, and the hand has not come to it yet.
    Returned,
}

impl Region {
    pub(super) fn of(state: u8) -> Self {
        match (state >> REGION_SHIFT) & 0b11 {
            0 => Self::Probation,
            1 => Self::Main,
            2 => Self::Promoted,
            _ => Self::Returned,
        }
    }

    pub(super) fn with_hits(self, hits: u8) -> u8 {
        let region: u8 = match self {
            Self::Probation => 0,
            Self::Main => 1,
            Self::Promoted => 2,
            Self::Returned => 3,
        };
        region << REGION_SHIFT | (!hits & HITS)
    }
}

/// The hits that a state counts.
#[inline]
pub(super) fn hits(state: u8) -> u8 {
    !state & HITS
}

/// The state after a hit; `None` when nothing is to be written.
#[inline(always)]
pub(super) fn after_hit(state: u8) -> Option<u8> {
    (state & HITS != 0).then(|| state - 1)
}
