//! How long the hand takes for a turn, counted in evictions.
//!
//! An entry that the hand finds without hits has not been asked for during a whole turn. A key that comes back sooner
//! than that after its eviction is asked for more often, and may have that entry's place. One that comes back later
//! may not: nobody knows which of the two is asked for more often.
//!
//! An example: a loop of 1,000 keys in a cache of 750. 250 keys are missing in each round, so each of them comes back 250
//! evictions after it left. If ghosts were believed, the hand would evict an entry for each of them. It would go round
//! faster than the loop, and evict entries that the loop was about to reach. As its turn gets shorter than 500 evictions,
//! ghosts are believed no more. The hand slows down, and the loop hits each entry before the hand comes again.

/// Looks before the pace is known.
const ENOUGH: u64 = 8;
/// Old evictions and looks fade after half a turn, but not before so many looks.
const LEAST_WINDOW: u64 = 32;

/// The hand's pace of late.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// Evictions from both regions.
    evictions: u64,
    /// Entries of the main region that the hand looked at meanwhile.
    looks: u64,
}

impl Turn {
    #[inline]
    pub(super) fn count_eviction(&mut self) {
        self.evictions += 1;
    }

    /// The hand looks at an entry of the main region, one of `entries` in both.
    #[inline]
    pub(super) fn count_look(&mut self, entries: usize) {
        self.looks += 1;
        if self.looks > (entries as u64 / 2).max(LEAST_WINDOW) {
            self.looks /= 2;
            self.evictions /= 2;
        }
    }

    /// Whether a turn over so many entries takes more than twice so many evictions. True while the pace is not known.
    pub(super) fn is_longer_than_twice(&self, evictions: usize, entries: usize) -> bool {
        // Evictions in a turn: those of late, times entries by looks.
        let twice = (evictions as u64).saturating_mul(2);
        let turn = (entries as u64).saturating_mul(self.evictions);
        self.looks < ENOUGH || twice.saturating_mul(self.looks) < turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_as_long_as_the_hand_is_slow() {
        let mut turn = Turn::default();
        assert!(turn.is_longer_than_twice(1_000_000, 100), "not known yet");
        let mut go_on = |evictions_per_look| {
            for _ in 0..1_000 {
                for _ in 0..evictions_per_look {
                    turn.count_eviction();
                }
                turn.count_look(100);
            }
            [240, 260].map(|evictions| turn.is_longer_than_twice(evictions, 100))
        };
        assert_eq!(go_on(5), [true, false], "100 looks are 500 evictions");
        assert_eq!(go_on(1), [false, false]);
        assert_eq!(go_on(20), [true, true]);
    }
}
