//! A tree for entries whose places are too much alike: no split of a segment would separate them.
//!
//! A segment that is full and may not split hands its entries over to the crowd, and is empty from
//! then on. The crowd is one ordered set of (place, id) for all such segments: a segment's part of
//! it is a range. So every operation takes time logarithmic in the crowd. A look-up also compares
//! the keys of all entries of the same place.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::bucket::Pair;

/// Bytes that an entry of the tree takes: eight, in nodes that are about two thirds full.
const BYTES_PER_PAIR: usize = 14;

#[derive(Debug)]
pub(super) struct Crowd(BTreeSet<u64>);

fn key(pair: Pair) -> u64 {
    u64::from(pair.place) << 32 | u64::from(pair.id)
}

fn pair(key: u64) -> Pair {
    Pair {
        place: (key >> 32) as u32,
        id: key as u32,
    }
}

/// All pairs of these places.
fn keys(places: RangeInclusive<u32>) -> RangeInclusive<u64> {
    let last = u64::from(*places.end()) << 32 | u64::from(u32::MAX);
    u64::from(*places.start()) << 32..=last
}

impl Crowd {
    pub(super) const fn new() -> Self {
        Self(BTreeSet::new())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.len() * BYTES_PER_PAIR
    }

    #[cold]
    pub(super) fn insert(&mut self, pair: Pair) {
        self.0.insert(key(pair));
    }

    #[cold]
    pub(super) fn remove(&mut self, pair: Pair) -> bool {
        self.0.remove(&key(pair))
    }

    /// The first id of this place that `is` accepts.
    pub(super) fn find(&self, place: u32, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        self.pairs(place..=place)
            .map(|pair| pair.id)
            .find(|id| is(*id))
    }

    /// The pairs of these places, in order.
    pub(super) fn pairs(&self, places: RangeInclusive<u32>) -> impl Iterator<Item = Pair> + '_ {
        self.0.range(keys(places)).copied().map(pair)
    }

    /// Visits the ids of these places in order. Once `visit` returns false it is `enough`: the ids
    /// of the same place are still visited, and the next place is returned, if there is one.
    pub(super) fn scan(
        &self,
        places: RangeInclusive<u32>,
        enough: &mut bool,
        mut visit: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let mut last = None;
        for pair in self.pairs(places) {
            if *enough && last.is_some_and(|last| last != pair.place) {
                return Some(pair.place);
            }
            last = Some(pair.place);
            *enough |= !visit(pair.id);
        }
        None
    }

    /// Takes the pairs of these places out.
    pub(super) fn take(&mut self, places: RangeInclusive<u32>) -> Vec<Pair> {
        let taken: Vec<Pair> = self.pairs(places).collect();
        for pair in &taken {
            self.0.remove(&key(*pair));
        }
        taken
    }

    /// An entry of these places, near a random one of them; all entries of one place are drawn
    /// about as often.
    pub(super) fn sample(&self, places: RangeInclusive<u32>, random: u64) -> Option<u32> {
        let (first, last) = (*places.start(), *places.end());
        let span = u64::from(last - first) + 1;
        let near = first + (((random >> 32) * span) >> 32) as u32;
        let met = self.0.range(keys(near..=last)).next();
        let met = met.or_else(|| self.0.range(keys(first..=near)).next_back())?;
        // Of the entries of that place, one whose id is near a random one between the least and the
        // greatest.
        let alike = keys(pair(*met).place..=pair(*met).place);
        let least = *self.0.range(alike.clone()).next()?;
        let greatest = *self.0.range(alike.clone()).next_back()?;
        let from = least + ((u64::from(random as u32) * (greatest - least + 1)) >> 32);
        let found = self.0.range(from..=*alike.end()).next()?;
        Some(pair(*found).id)
    }
}
