//! A segment of the index: an array of buckets, in which an entry has a home, or spills into the
//! next bucket.

use std::ops::RangeInclusive;

use super::bucket::{Bucket, Pair, WORDS};
use super::{Elsewhere, SEGMENT_BUCKETS_MAX, scatter};
use crate::shared::{Block, Purpose};

/// Draws of a random cell that may be vacant.
const SAMPLE_TRIES: u32 = 8;

#[derive(Debug)]
pub(super) struct Segment {
    /// Empty when the entries are in the crowd. Then a look-up ends at once, and needs no test for
    /// the crowd.
    pub(super) buckets: Block<Bucket>,
    pub(super) len: u32,
    /// The least place of this segment.
    pub(super) start: u32,
    /// The number of top bits of the place that all entries of this segment share.
    pub(super) depth: u8,
}

/// Entries that a segment of this many buckets takes before it grows: 3/4 of what fits.
pub(super) const fn capacity(buckets: usize) -> usize {
    buckets * WORDS * 3 / 4
}

/// The next larger segment: four steps a doubling, which are also the usual allocators' size
/// classes.
pub(super) fn next_size(buckets: usize) -> usize {
    if buckets < 8 {
        buckets + 1
    } else {
        buckets + (1 << buckets.ilog2()) / 4
    }
}

/// The number of buckets of the smallest segment that holds `len` entries.
pub(super) fn size_for(len: usize) -> usize {
    let mut buckets = 1;
    while capacity(buckets) < len {
        buckets = next_size(buckets);
    }
    buckets
}

impl Segment {
    pub(super) fn new(start: u32, depth: u8, buckets: usize, purpose: Purpose) -> Self {
        Self {
            buckets: Block::zeroed(buckets, purpose),
            len: 0,
            start,
            depth,
        }
    }

    /// Returns whether the entries are in the crowd.
    #[inline]
    pub(super) fn is_crowded(&self) -> bool {
        self.buckets.is_empty()
    }

    /// The segment's places.
    pub(super) fn places(&self) -> RangeInclusive<u32> {
        self.start..=self.start | u32::MAX >> self.depth
    }

    /// Returns whether all its entries have this place. Then no split separates them.
    pub(super) fn is_all(&self, place: u32) -> bool {
        self.pairs().all(|pair| pair.place == place)
    }

    #[inline]
    pub(super) fn home(&self, place: u32) -> usize {
        ((u64::from(place << self.depth) * self.buckets.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, bucket: usize) -> usize {
        if bucket + 1 == self.buckets.len() {
            0
        } else {
            bucket + 1
        }
    }

    #[inline(always)]
    pub(super) fn find(
        &self,
        place: u32,
        mut is: impl FnMut(u32) -> bool,
    ) -> Result<u32, Elsewhere> {
        let mut at = self.home(place);
        for _ in 0..self.buckets.len() {
            let bucket = &self.buckets[at];
            if let Some(i) = bucket.find(place, &mut is) {
                return Ok(bucket.id(i));
            }
            if !bucket.is_full() {
                return Err(Elsewhere::Nowhere);
            }
            at = self.after(at);
        }
        // Some bucket has room, if there are any.
        Err(Elsewhere::Crowd)
    }

    #[inline]
    pub(super) fn insert(&mut self, pair: Pair) {
        let mut at = self.home(pair.place);
        loop {
            let bucket = &self.buckets[at];
            if let Some(i) = bucket.vacant() {
                bucket.set(i, pair);
                self.len += 1;
                return;
            }
            at = self.after(at);
        }
    }

    /// Puts pairs into buckets that are vacant.
    #[inline]
    pub(super) fn fill(&mut self, pairs: impl IntoIterator<Item = Pair>) {
        // How many pairs each has: that is quicker to look up here than in the buckets.
        let mut lens = [0_u8; SEGMENT_BUCKETS_MAX];
        pairs.into_iter().for_each(|pair| {
            let mut at = self.home(pair.place);
            while usize::from(lens[at]) == WORDS {
                at = self.after(at);
            }
            self.buckets[at].set(usize::from(lens[at]), pair);
            lens[at] += 1;
            self.len += 1;
        });
    }

    pub(super) fn position(&self, pair: Pair) -> Option<(usize, usize)> {
        let mut at = self.home(pair.place);
        for _ in 0..self.buckets.len() {
            if let Some(i) = self.buckets[at].find(pair.place, |id| id == pair.id) {
                return Some((at, i));
            }
            at = self.after(at);
        }
        None
    }

    #[inline]
    pub(super) fn remove(&mut self, pair: Pair) -> bool {
        let home = self.home(pair.place);
        match self.buckets.get(home) {
            // Nothing can have spilled past it.
            Some(bucket) if !bucket.is_full() => {
                let Some(i) = bucket.find(pair.place, |id| id == pair.id) else {
                    return false;
                };
                bucket.take(i);
                self.len -= 1;
                true
            }
            _ => self.remove_from_full(pair),
        }
    }

    /// Removes a pair whose home bucket is full.
    #[inline(never)]
    fn remove_from_full(&mut self, pair: Pair) -> bool {
        let Some((mut at, mut i)) = self.position(pair) else {
            return false;
        };
        self.len -= 1;
        loop {
            // The hole may break the chain of an entry that spilled past this bucket: find one in
            // the buckets that follow, move it here, and go on with the hole that it leaves.
            let spilled = if self.buckets[at].is_full() {
                self.spilled_past(at)
            } else {
                None
            };
            let Some((from, j)) = spilled else {
                self.buckets[at].take(i);
                return true;
            };
            let moved = self.buckets[from].pair(j);
            self.buckets[at].set(i, moved);
            (at, i) = (from, j);
        }
    }

    /// An entry after bucket `hole` whose home is at or before it.
    fn spilled_past(&self, hole: usize) -> Option<(usize, usize)> {
        let count = self.buckets.len();
        let mut at = hole;
        for step in 1..count {
            at = self.after(at);
            let bucket = &self.buckets[at];
            for j in 0..WORDS {
                let pair = bucket.pair(j);
                if pair.id == 0 {
                    return None;
                }
                // How far the entry lies after its home; at least `step` means that it passed the
                // hole.
                let home = self.home(pair.place);
                let spill = if at >= home {
                    at - home
                } else {
                    at + count - home
                };
                if spill >= step {
                    return Some((at, j));
                }
            }
        }
        None
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = Pair> + '_ {
        self.buckets.iter().flat_map(Bucket::pairs)
    }

    /// Gives the segment another number of buckets; returns the old ones.
    pub(super) fn resize(&mut self, buckets: usize, purpose: Purpose) -> Block<Bucket> {
        let mut new = Self::new(self.start, self.depth, buckets, purpose);
        new.fill(self.pairs());
        std::mem::replace(self, new).buckets
    }

    /// Visits the entries whose home is `bucket`.
    fn visit_home(&self, bucket: usize, mut visit: impl FnMut(Pair)) {
        let mut at = bucket;
        for _ in 0..self.buckets.len() {
            for pair in self.buckets[at].pairs() {
                if self.home(pair.place) == bucket {
                    visit(pair);
                }
            }
            if !self.buckets[at].is_full() {
                return;
            }
            at = self.after(at);
        }
    }

    /// Visits entries in the order of places from `from` on. Returns the place to go on from if
    /// `visit` said before the segment's end that it is `enough`.
    #[inline]
    pub(super) fn scan(
        &self,
        from: u32,
        enough: &mut bool,
        mut visit: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        for bucket in self.home(from)..self.buckets.len() {
            self.visit_home(bucket, |pair| {
                if pair.place >= from {
                    *enough |= !visit(pair.id);
                }
            });
            if *enough {
                // The least place whose home is the next bucket.
                let scaled = ((bucket as u64 + 1) << 32).div_ceil(self.buckets.len() as u64);
                let next = u64::from(self.start) + scaled.div_ceil(1 << self.depth);
                let next = u32::try_from(next).ok()?;
                return (next <= *self.places().end()).then_some(next);
            }
        }
        None
    }

    /// An entry of a random cell. `turn` gives the random bits, and has other ones afterwards.
    #[inline]
    pub(super) fn sample(&self, turn: &mut u64) -> Option<u32> {
        let words = self.buckets.len() * WORDS;
        let id = |i: usize| self.buckets[i / WORDS].id(i % WORDS);
        // Pairs are packed to the front of a bucket. After a vacant cell the next pair would always
        // be the first of its bucket. So draw again, and go from cell to cell only when most cells
        // are vacant.
        for _ in 0..SAMPLE_TRIES {
            *turn = scatter(*turn);
            let id = id(*turn as usize % words);
            if id != 0 {
                return Some(id);
            }
        }
        (0..words)
            .map(|i| id((*turn as usize + i) % words))
            .find(|id| *id != 0)
    }

    /// Panics if the structure is broken. O(n).
    #[inline]
    pub(super) fn validate(&self) {
        let own = if self.is_crowded() {
            0
        } else {
            self.len as usize
        };
        assert_eq!(self.pairs().count(), own, "segment length");
        for bucket in self.buckets.iter() {
            let mut vacant = (0..WORDS).skip_while(|i| bucket.id(*i) != 0);
            assert!(vacant.all(|i| bucket.id(i) == 0), "a bucket has a gap");
        }
        for pair in self.pairs() {
            let places = self.places();
            assert!(
                places.contains(&pair.place),
                "an entry is in the wrong segment"
            );
            let found = self.find(pair.place, |id| id == pair.id);
            assert!(found.is_ok(), "a spilled entry is out of reach");
        }
    }
}
