//! Whether ghosts are believed.

use super::rate::Rate;

/// Outcomes after which the rates fade.
const WINDOW: u32 = 64;
/// Ghosts are doubted while less than this percentage of the entries that they brought back is hit.
const BELIEVED_PERCENT: u32 = 15;
/// Ghosts are doubted while at least this percentage of the main region is in use.
const BUSY_PERCENT: u32 = 85;
/// The main region has no room to give while at least this percentage of it is in use.
const IN_USE_PERCENT: u32 = 65;
/// While ghosts are doubted, one in this many is still believed.
const DOUBTED_PART: u32 = 64;

/// What is known of the entries that ghosts brought back, and of those whose place they would take.
#[derive(Debug, Default)]
pub(super) struct Trust {
    /// Of the entries that the ghosts remembered: which were hit before the hand came.
    returned: Rate,
    /// Of the main region's entries at which the hand glanced: which had hits.
    in_use: Rate,
    /// Ghosts that were not believed since the last one that was.
    doubted: u32,
}

impl Trust {
    /// The hand has come to an entry that a ghost brought back.
    #[inline]
    pub(super) fn count_returned(&mut self, was_hit: bool) {
        self.returned.count(was_hit, WINDOW);
    }

    /// The hand has glanced at an entry of the main region.
    #[inline]
    pub(super) fn count_in_use(&mut self, was_hit: bool) {
        self.in_use.count(was_hit, WINDOW);
    }

    /// Whether so much of the main region is in use that it should not shrink.
    pub(super) fn main_is_in_use(&self) -> bool {
        self.in_use.reaches(IN_USE_PERCENT)
    }

    /// Whether what the ghosts brought back is hardly ever hit.
    pub(super) fn is_deceived(&self) -> bool {
        self.returned.is_below(BELIEVED_PERCENT)
    }

    /// Whether a key that the ghosts remember goes to the main region.
    pub(super) fn believes(&mut self) -> bool {
        if !self.is_deceived() && !self.in_use.reaches(BUSY_PERCENT) {
            return true;
        }
        self.doubted += 1;
        if self.doubted < DOUBTED_PART {
            return false;
        }
        self.doubted = 0;
        true
    }
}
