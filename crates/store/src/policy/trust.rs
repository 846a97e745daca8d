//! Decides up to which age ghosts are believed.
//!
//! A key that comes back while its ghost is remembered may have a place in the main region. The
//! hand then evicts an entry that was not hit for a [`HandTurn`](super::turn::HandTurn). Is the key
//! worth more than that entry? The younger its ghost, the more often it is asked for, but nobody
//! knows how much younger it must be. So the policy tries it out: it counts which of the entries
//! that ghosts brought back are hit before the hand comes. Ghosts are believed up to an age of
//!
//! ```text
//! a turn of the hand  ×  the fraction of those entries that were hit  ×  twice the idle fraction of the main region
//! ```
//!
//! So doubt has degrees. If few of those entries are hit, only younger ghosts are believed. They
//! tell more, the fraction recovers, and the age with it. If most of the main region is in use, the
//! hand takes hits from many entries before it finds an idle one, so a place there costs more. One
//! in [`DOUBTED_PART`] of the ghosts that are too old is believed too: else a cache that believes
//! none would never learn that it should. Before enough is known of those entries, all of them
//! count as hit: a cache that is asked for few keys twice would else have learnt too late.
//!
//! A key that came back before and was not believed is asked for again and again, though it has no
//! place. Its ghost is believed up to two and a half times that age. The record decides here too:
//! if none of those that came back is hit, the age is 0, and two and a half times that is 0. One in
//! [`DOUBTED_PART`] of such ghosts that are still too old is believed, also if it is older than a
//! turn.
//!
//! An example: a loop of 1,000 keys in a cache of 750. 250 keys are missing in each round, so each
//! of them comes back 250 evictions after it left. If all were believed, the hand would evict an
//! entry for each of them. It would go round faster than the loop, and evict entries that the loop
//! was about to reach. But then few that came back are hit, and the limit falls below 250. The hand
//! slows down, and the loop hits each entry before the hand comes again.

use super::rate::Rate;

/// Outcomes after which the rate of entries in use fades.
const IN_USE_WINDOW: u32 = 64;
/// Outcomes after which the rate of entries that were hit after they came back fades: a quarter of
/// the entries, but within these limits. A loop may bring some hundred back in a row that are all
/// hit, or none.
const RETURNED_WINDOW: (u32, u32) = (64, 8192);
/// The main region has no room to give while at least this percentage of it is in use.
const IN_USE_PERCENT: u32 = 70;
/// One in this many of the ghosts that are too old to be believed is believed.
const DOUBTED_PART: u32 = 48;
/// The age up to which the ghost of a key is believed that came back before in vain: this many
/// halves of the usual one.
const MISSED_HALVES: u64 = 5;
/// Fractions are counted in parts of this.
const WHOLE: u16 = 1024;

/// The statistics of entries that ghosts brought back, and of those whose place they would take.
#[derive(Debug, Default)]
pub(super) struct Trust {
    /// Of the entries that the ghosts remembered: which were hit before the hand came.
    returned: Rate,
    /// Of the main region's entries that the hand probed: those that had hits.
    in_use: Rate,
    /// Ghosts that were too old since the last one that was believed all the same.
    doubted: u32,
}

impl Trust {
    /// The hand has come to an entry that a ghost brought back, one of `entries` in both regions.
    #[inline]
    pub(super) fn count_returned(&mut self, was_hit: bool, entries: usize) {
        let (least, most) = RETURNED_WINDOW;
        let quarter = u32::try_from(entries / 4).unwrap_or(most);
        self.returned.count(was_hit, quarter.clamp(least, most));
    }

    /// The hand has probed an entry of the main region.
    #[inline]
    pub(super) fn count_in_use(&mut self, was_hit: bool) {
        self.in_use.count(was_hit, IN_USE_WINDOW);
    }

    /// Returns whether so much of the main region is in use that it should not shrink. Not if
    /// probation's entries are hit nearly as often, though each stays for a short time only.
    pub(super) fn main_is_in_use(&self, hit_on_probation: Rate) -> bool {
        let in_use = self.in_use.of(WHOLE).unwrap_or(0);
        let on_probation = hit_on_probation.of(WHOLE).unwrap_or(0);
        self.in_use.reaches(IN_USE_PERCENT) && on_probation * 3 < in_use * 2
    }

    /// Returns whether a key that the ghosts remember goes to the main region. Its ghost's age and
    /// the hand's `turn` are counted in evictions. `was_missed` if it came back before, and was not
    /// believed.
    pub(super) fn believes(&mut self, age: usize, turn: u64, was_missed: bool) -> bool {
        let age = age as u64;
        let oldest = self.oldest_believed(turn);
        let oldest = match was_missed {
            true => oldest.saturating_mul(MISSED_HALVES) / 2,
            false => oldest,
        };
        if age < oldest {
            return true;
        }
        if age >= turn && !was_missed {
            return false;
        }
        self.doubted += 1;
        if self.doubted < DOUBTED_PART {
            return false;
        }
        self.doubted = 0;
        true
    }

    /// The age up to which ghosts are believed: a whole turn while nothing is known.
    fn oldest_believed(&self, turn: u64) -> u64 {
        let half = u32::from(WHOLE) / 2;
        let hit = u64::from(self.returned.of(WHOLE).unwrap_or(WHOLE.into()));
        let idle = u64::from(u32::from(WHOLE) - self.in_use.of(WHOLE).unwrap_or(half));
        let whole = u64::from(WHOLE);
        turn.saturating_mul(2 * hit * idle) / (whole * whole)
    }
}

#[cfg(test)]
impl Trust {
    /// Returns whether only ghosts much younger than half a turn are believed.
    pub(super) fn doubts(&self) -> bool {
        self.oldest_believed(1024) < 128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trust that knows these percentages.
    fn knowing(returned: u32, in_use: u32) -> Trust {
        let mut trust = Trust::default();
        for outcome in 0..1_000 {
            trust.count_returned(outcome * 7 % 100 < returned, 100);
            trust.count_in_use(outcome * 7 % 100 < in_use);
        }
        trust
    }

    #[test]
    fn ghosts_are_believed_up_to_a_turn_while_nothing_is_known() {
        let mut trust = Trust::default();
        assert!(trust.believes(999, 1_000, false));
        assert!(!trust.believes(1_000, 1_000, false));
    }

    #[test]
    fn the_fewer_that_came_back_are_hit_the_younger_must_a_ghost_be() {
        let oldest = |returned, in_use| knowing(returned, in_use).oldest_believed(1_000);
        for (returned, in_use, expected) in [(50, 50, 500), (10, 50, 100), (50, 90, 100)] {
            let oldest = oldest(returned, in_use);
            assert!(oldest.abs_diff(expected) < 100, "{oldest}, not {expected}");
        }
        assert_eq!(oldest(0, 50), 0, "none was hit");
    }

    #[test]
    fn a_key_that_was_missed_may_have_an_older_ghost_but_the_record_counts_too() {
        let mut trust = knowing(50, 50);
        let oldest = trust.oldest_believed(1_000) as usize;
        assert!(!trust.believes(oldest, 1_000, false));
        assert!(trust.believes(2 * oldest, 1_000, true));
        assert!(!trust.believes(3 * oldest, 1_000, true));
        let mut trust = knowing(0, 50);
        assert!(!trust.believes(0, 1_000, true), "none was hit");
    }

    #[test]
    fn one_in_some_old_ghosts_is_believed_but_none_that_is_older_than_a_turn_unless_it_was_missed()
    {
        let mut trust = knowing(0, 50);
        let mut believed = |age, was_missed| {
            (0..100 * DOUBTED_PART)
                .filter(|_| trust.believes(age, 1_000, was_missed))
                .count()
        };
        assert_eq!(believed(900, false), 100);
        assert_eq!(believed(1_000, false), 0);
        assert_eq!(believed(1_000, true), 100);
    }
}
