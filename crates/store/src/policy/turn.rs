//! The length of a turn of the hand, counted in evictions. The ages of ghosts are measured by it.

/// Looks before the pace is known.
const ENOUGH: u64 = 8;
/// Old evictions and looks fade after half a turn, but not before so many looks.
const LEAST_WINDOW: u64 = 32;

/// The hand's pace of late.
#[derive(Debug, Default)]
pub(super) struct HandTurn {
    /// Evictions from both regions.
    evictions: u64,
    /// Entries of the main region that the hand looked at meanwhile.
    looks: u64,
}

impl HandTurn {
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

    /// The evictions in a turn over so many entries, those of late. `None` while the pace is not
    /// known.
    pub(super) fn evictions(&self, entries: usize) -> Option<u64> {
        // Counts of late: no more than a few times the entries, so the product fits.
        (self.looks >= ENOUGH).then(|| (entries as u64).saturating_mul(self.evictions) / self.looks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_as_long_as_the_hand_is_slow() {
        let mut turn = HandTurn::default();
        assert_eq!(turn.evictions(100), None, "not known yet");
        let mut go_on = |evictions_per_look| {
            for _ in 0..1_000 {
                for _ in 0..evictions_per_look {
                    turn.count_eviction();
                }
                turn.count_look(100);
            }
            turn.evictions(100).expect("known")
        };
        for pace in [5, 1, 20] {
            let evictions = go_on(pace);
            assert!(
                evictions.abs_diff(100 * pace) <= 5 * pace,
                "{evictions} evictions in 100 looks, {pace} each"
            );
        }
    }
}
