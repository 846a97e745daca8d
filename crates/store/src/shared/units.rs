//! A bitmap of the units of a slab: a bit is set if its unit is taken.

use std::ops::Range;

/// Units of a slab.
pub(super) const UNITS: usize = 1024;

#[derive(Debug)]
pub(super) struct Units {
    taken: [u64; UNITS / 64],
    count: usize,
}

impl Units {
    pub(super) const fn new() -> Self {
        Self {
            taken: [0; UNITS / 64],
            count: 0,
        }
    }

    /// Units that are taken.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Takes the first vacant units that lie together; returns the first of them.
    pub(super) fn take(&mut self, count: usize) -> Option<usize> {
        let start = self.vacant().find(|run| run.len() >= count)?.start;
        self.turn(start, count);
        self.count += count;
        Some(start)
    }

    pub(super) fn give(&mut self, at: usize, count: usize) {
        debug_assert!(self.first(at, false) >= at + count, "they are taken");
        self.turn(at, count);
        self.count -= count;
    }

    /// Length of the longest run of vacant units.
    pub(super) fn longest(&self) -> usize {
        self.vacant().map(|run| run.len()).max().unwrap_or(0)
    }

    /// Takes vacant units, and gives taken ones.
    fn turn(&mut self, at: usize, count: usize) {
        for unit in at..at + count {
            self.taken[unit / 64] ^= 1 << (unit % 64);
        }
    }

    /// Runs of vacant units, in order.
    pub(super) fn vacant(&self) -> impl Iterator<Item = Range<usize>> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let start = self.first(from, false);
            from = self.first(start, true);
            (start < UNITS).then_some(start..from)
        })
    }

    /// The first unit from this one on that is taken, or is not; [`UNITS`] if there is none.
    fn first(&self, from: usize, is_taken: bool) -> usize {
        let mut mask = u64::MAX << (from % 64);
        for word in from / 64..self.taken.len() {
            let flip = if is_taken { 0 } else { u64::MAX };
            let bits = (self.taken[word] ^ flip) & mask;
            if bits != 0 {
                return word * 64 + bits.trailing_zeros() as usize;
            }
            mask = u64::MAX;
        }
        UNITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_across_words() {
        let mut units = Units::new();
        assert_eq!(units.longest(), UNITS);
        assert_eq!(units.take(60), Some(0));
        assert_eq!(units.take(10), Some(60));
        assert_eq!(units.take(UNITS - 70), Some(70));
        assert_eq!((units.take(1), units.longest()), (None, 0));
        units.give(60, 10);
        assert_eq!((units.take(11), units.longest()), (None, 10));
        units.give(0, 60);
        assert_eq!(units.longest(), 70);
        units.give(70, UNITS - 70);
        assert_eq!((units.count(), units.longest()), (0, UNITS));
    }
}
