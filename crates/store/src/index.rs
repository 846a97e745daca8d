//! The hash index: from a hash to an id, in segments that grow, split and merge one at a time.
//!
//! # Structure
//!
//! Extendible hashing. The index knows an entry by 32 bits of its hash, its *place*. A directory maps
//! the top `depth` bits of a place to a segment; a segment is an array of cache-line buckets of eight
//! places and the eight ids that belong to them. Within its segment an entry's home bucket is its place's
//! remaining bits scaled to the number of buckets, so the whole index is ordered by place: home
//! buckets in order are places in order. That order is what [`Index::scan`] walks, with a place as its
//! cursor: it survives growth, splits and entries that move.
//!
//! A full bucket spills into the next one (round the segment's end). Invariant: an entry lies `n`
//! buckets after its home only if the `n` buckets from its home on are full; removal shifts spilled
//! entries back. So a look-up stops at the first bucket that has room.
//!
//! # Cost
//!
//! A segment has at most 512 buckets (32 KiB), grows by about a fifth at a time, and splits in two when
//! it is full: no operation touches more than one segment and its sibling, at most 3,584 pairs. The
//! directory doubles as a plain copy of 4 bytes a segment, 1/700 byte an entry. At 7/8 full when it
//! grows, an entry costs 9.1–11.4 bytes.
//!
//! Sources: Fagin et al., "Extendible Hashing" (1979).

/// Pairs of a bucket: one cache line.
const WORDS: usize = 8;

/// Draws of a random cell that may be vacant.
const SAMPLE_TRIES: u32 = 8;

/// Buckets of the largest segment, unless its entries' places are all alike.
const SEGMENT_BUCKETS_MAX: usize = 512;

/// Deepest directory: 2^26 segments hold more entries than ids can name.
const DEPTH_MAX: u8 = 26;

/// Eight places, and beside them their ids. The places' low bytes are together in one word, so that all
/// eight are compared at once. Pairs are packed to the front; an id of 0 marks a vacant one.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Bucket {
    ids: [u32; WORDS],
    low: u64,
    middle: [u8; WORDS],
    high: [u16; WORDS],
}

const EMPTY: Bucket = Bucket {
    ids: [0; WORDS],
    low: 0,
    middle: [0; WORDS],
    high: [0; WORDS],
};

/// One in every byte.
const ONES: u64 = u64::MAX / 0xff;

/// The bytes of `word` that equal `byte`, as their highest bits. A byte above an equal one may be
/// reported though it differs by one: the caller looks at the whole place anyway.
#[inline]
fn equal_bytes(word: u64, byte: u8) -> u64 {
    let differs = word ^ (ONES * u64::from(byte));
    differs.wrapping_sub(ONES) & !differs & (ONES << 7)
}

impl Bucket {
    #[inline]
    fn is_full(&self) -> bool {
        self.ids[WORDS - 1] != 0
    }

    /// How many pairs there are.
    #[inline]
    fn len(&self) -> usize {
        // They are packed: a search in three steps.
        let mut len = usize::from(self.ids[3] != 0) * 4;
        len += usize::from(self.ids[len + 1] != 0) * 2;
        len += usize::from(self.ids[len] != 0);
        len + usize::from(self.is_full())
    }

    #[inline]
    fn pair(&self, i: usize) -> Pair {
        let low = (self.low >> (8 * i)) as u8;
        let middle = self.middle[i];
        Pair {
            place: u32::from(self.high[i]) << 16 | u32::from(middle) << 8 | u32::from(low),
            id: self.ids[i],
        }
    }

    #[inline]
    fn set(&mut self, i: usize, pair: Pair) {
        let shift = 8 * i;
        self.low = self.low & !(0xff << shift) | u64::from(pair.place as u8) << shift;
        self.middle[i] = (pair.place >> 8) as u8;
        self.high[i] = (pair.place >> 16) as u16;
        self.ids[i] = pair.id;
    }

    /// The first pair of this place whose id is one that `is` accepts.
    #[inline]
    fn find(&self, place: u32, mut is: impl FnMut(u32) -> bool) -> Option<usize> {
        let mut found = equal_bytes(self.low, place as u8);
        while found != 0 {
            let i = found.trailing_zeros() as usize / 8;
            let id = self.ids[i];
            // A vacant cell shows the place 0.
            if self.high[i] == (place >> 16) as u16 && id != 0 && is(id) {
                return Some(i);
            }
            found &= found - 1;
        }
        None
    }

    /// Takes a pair out; the last one moves to its place.
    #[inline]
    fn take(&mut self, i: usize) {
        let last = self.len() - 1;
        self.set(i, self.pair(last));
        self.set(last, VACANT);
    }

    fn pairs(self) -> impl Iterator<Item = Pair> {
        (0..self.len()).map(move |i| self.pair(i))
    }
}

/// An entry as the index knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    place: u32,
    id: u32,
}

const VACANT: Pair = Pair { place: 0, id: 0 };

#[derive(Debug)]
struct Segment {
    buckets: Box<[Bucket]>,
    len: u32,
    /// How many top bits of the place all entries of this segment share.
    depth: u8,
}

/// From a 32-bit place to the ids of the entries there. Ids are never 0. The fields are in this order so
/// that those of a look-up are in one cache line.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Index {
    segments: Vec<Segment>,
    directory: Vec<u32>,
    depth: u8,
    len: usize,
    /// Buckets of all segments.
    buckets: usize,
    /// Segments of each depth, so that the directory knows when it may halve.
    at_depth: [u32; DEPTH_MAX as usize + 1],
    /// Memory that is no longer needed, if somebody wants to free it elsewhere.
    freed: Option<Vec<Box<[Bucket]>>>,
}

/// Memory that an index needs no more.
#[derive(Debug)]
#[allow(dead_code, reason = "kept to be dropped")]
pub(crate) struct FreedBuckets(Vec<Box<[Bucket]>>);

/// Entries that a segment of so many buckets takes before it grows: 7/8 of its words.
fn capacity(buckets: usize) -> usize {
    buckets * (WORDS - 1)
}

/// The next larger segment: four steps a doubling, which are also the usual allocators' size classes.
fn next_size(buckets: usize) -> usize {
    if buckets < 8 {
        buckets + 1
    } else {
        buckets + (1 << buckets.ilog2()) / 4
    }
}

/// The smallest segment that holds so many entries.
fn size_for(len: usize) -> usize {
    let mut buckets = 1;
    while capacity(buckets) < len {
        buckets = next_size(buckets);
    }
    buckets
}

impl Segment {
    fn new(depth: u8, buckets: usize) -> Self {
        Self {
            buckets: vec![EMPTY; buckets].into_boxed_slice(),
            len: 0,
            depth,
        }
    }

    #[inline]
    fn home(&self, place: u32) -> usize {
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

    #[inline]
    fn find(&self, place: u32, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = self.home(place);
        for _ in 0..self.buckets.len() {
            let bucket = &self.buckets[at];
            if let Some(i) = bucket.find(place, &mut is) {
                return Some(bucket.ids[i]);
            }
            if !bucket.is_full() {
                return None;
            }
            at = self.after(at);
        }
        None
    }

    #[inline]
    fn insert(&mut self, pair: Pair) {
        let mut at = self.home(pair.place);
        loop {
            let bucket = &mut self.buckets[at];
            if !bucket.is_full() {
                bucket.set(bucket.len(), pair);
                self.len += 1;
                return;
            }
            at = self.after(at);
        }
    }

    fn position(&self, pair: Pair) -> Option<(usize, usize)> {
        let mut at = self.home(pair.place);
        for _ in 0..self.buckets.len() {
            if let Some(i) = self.buckets[at].find(pair.place, |id| id == pair.id) {
                return Some((at, i));
            }
            at = self.after(at);
        }
        None
    }

    fn remove(&mut self, pair: Pair) -> bool {
        let Some((mut at, mut i)) = self.position(pair) else {
            return false;
        };
        self.len -= 1;
        loop {
            // The hole may break the chain of an entry that spilled past this bucket: find one in the
            // buckets that follow, move it here, and go on with the hole that it leaves.
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
            for (j, pair) in self.buckets[at].pairs().enumerate() {
                // How far the entry lies after its home; at least `step` means that it passed the hole.
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
            if !self.buckets[at].is_full() {
                return None;
            }
        }
        None
    }

    fn pairs(&self) -> impl Iterator<Item = Pair> + '_ {
        self.buckets.iter().flat_map(|bucket| bucket.pairs())
    }

    /// Gives the segment so many buckets; returns the old ones.
    fn resize(&mut self, buckets: usize) -> Box<[Bucket]> {
        let mut new = Self::new(self.depth, buckets);
        self.pairs().for_each(|pair| new.insert(pair));
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
}

impl Index {
    pub(crate) const fn new() -> Self {
        Self {
            directory: Vec::new(),
            depth: 0,
            segments: Vec::new(),
            len: 0,
            buckets: 0,
            at_depth: [0; DEPTH_MAX as usize + 1],
            freed: None,
        }
    }

    /// From now on freed memory waits for [`Index::take_freed`].
    pub(crate) fn defer_frees(&mut self) {
        self.freed.get_or_insert_default();
    }

    #[inline]
    pub(crate) fn take_freed(&mut self) -> Option<FreedBuckets> {
        let freed = self.freed.as_mut().filter(|freed| !freed.is_empty())?;
        Some(FreedBuckets(std::mem::take(freed)))
    }

    fn free(&mut self, buckets: Box<[Bucket]>) {
        if let Some(freed) = &mut self.freed {
            freed.push(buckets);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Heap bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.buckets * size_of::<Bucket>()
            + self.segments.capacity() * size_of::<Segment>()
            + self.directory.capacity() * 4
    }

    #[inline]
    fn slot(&self, place: u32) -> usize {
        // A shift by 32 would be one too many for depth 0.
        (u64::from(place) << self.depth >> 32) as usize
    }

    #[inline]
    fn segment(&self, place: u32) -> Option<&Segment> {
        let number = *self.directory.get(self.slot(place))?;
        Some(&self.segments[number as usize])
    }

    #[inline]
    pub(crate) fn find(&self, place: u32, is: impl FnMut(u32) -> bool) -> Option<u32> {
        self.segment(place)?.find(place, is)
    }

    /// Loads the bucket of a place, so that a removal soon after finds it in the cache.
    #[inline]
    pub(crate) fn touch(&self, place: u32) -> u32 {
        self.segment(place)
            .map_or(0, |segment| segment.buckets[segment.home(place)].ids[0])
    }

    /// The place at which a stored id is, found by a walk. O(n).
    #[cold]
    pub(crate) fn place_of(&self, id: u32) -> Option<u32> {
        let mut pairs = self.segments.iter().flat_map(Segment::pairs);
        pairs.find(|pair| pair.id == id).map(|pair| pair.place)
    }

    pub(crate) fn insert(&mut self, place: u32, id: u32) {
        debug_assert_ne!(id, 0, "id 0 marks an empty word");
        if self.directory.is_empty() {
            self.directory.push(0);
            self.segments.push(Segment::new(0, 1));
            self.buckets = 1;
            self.at_depth[0] = 1;
        }
        loop {
            let number = self.directory[self.slot(place)];
            let segment = &mut self.segments[number as usize];
            let buckets = segment.buckets.len();
            if (segment.len as usize) < capacity(buckets) {
                segment.insert(Pair { place, id });
                self.len += 1;
                return;
            }
            if buckets < SEGMENT_BUCKETS_MAX || segment.depth == DEPTH_MAX {
                let larger = next_size(buckets);
                let old = segment.resize(larger);
                self.free(old);
                self.buckets += larger - buckets;
            } else {
                self.split(number, place);
            }
        }
    }

    /// Exchanges the id of an entry that has moved.
    pub(crate) fn replace(&mut self, place: u32, old: u32, new: u32) {
        let number = self.directory[self.slot(place)];
        let segment = &mut self.segments[number as usize];
        if let Some((bucket, i)) = segment.position(Pair { place, id: old }) {
            segment.buckets[bucket].ids[i] = new;
        } else {
            debug_assert!(false, "a moved entry is in the index");
        }
    }

    pub(crate) fn remove(&mut self, place: u32, id: u32) -> bool {
        let Some(&number) = self.directory.get(self.slot(place)) else {
            return false;
        };
        let segment = &mut self.segments[number as usize];
        if !segment.remove(Pair { place, id }) {
            return false;
        }
        self.len -= 1;
        let (len, buckets) = (segment.len as usize, segment.buckets.len());
        // Half of what it would hold before it grew: shrink, and see whether the sibling can join.
        if len < capacity(buckets) / 2 && (buckets > 1 || segment.depth > 0) {
            self.shrink(number, place);
        }
        true
    }

    #[cold]
    fn shrink(&mut self, number: u32, place: u32) {
        let segment = &mut self.segments[number as usize];
        let (len, buckets) = (segment.len as usize, segment.buckets.len());
        if segment.depth > 0
            && len <= capacity(SEGMENT_BUCKETS_MAX) / 4
            && self.merge(number, place)
        {
            return;
        }
        let segment = &mut self.segments[number as usize];
        let smaller = size_for(len + len / 4);
        if smaller < buckets {
            let old = segment.resize(smaller);
            self.free(old);
            self.buckets -= buckets - smaller;
        }
    }

    #[cold]
    fn split(&mut self, number: u32, place: u32) {
        let old_depth = self.segments[number as usize].depth;
        if old_depth == self.depth {
            self.directory = self.directory.iter().flat_map(|&n| [n, n]).collect();
            self.depth += 1;
        }
        let depth = old_depth + 1;
        let old = &self.segments[number as usize];
        let upper = |pair: Pair| pair.place >> (32 - depth) & 1 == 1;
        let upper_len = old.pairs().filter(|pair| upper(*pair)).count();
        let mut halves = [
            Segment::new(depth, size_for(old.len as usize - upper_len)),
            Segment::new(depth, size_for(upper_len)),
        ];
        old.pairs()
            .for_each(|pair| halves[usize::from(upper(pair))].insert(pair));

        self.buckets -= old.buckets.len();
        self.buckets += halves[0].buckets.len() + halves[1].buckets.len();
        self.at_depth[old_depth as usize] -= 1;
        self.at_depth[depth as usize] += 2;
        let [low, high] = halves;
        let old = std::mem::replace(&mut self.segments[number as usize], low);
        self.free(old.buckets);
        let new = self.segments.len() as u32;
        self.segments.push(high);
        // The upper half of the run of directory slots that led to the old segment.
        let run = 1usize << (self.depth - old_depth);
        let first = self.slot(place) / run * run;
        self.directory[first + run / 2..first + run].fill(new);
    }

    /// Joins a segment with its sibling if both are nearly empty.
    fn merge(&mut self, number: u32, place: u32) -> bool {
        let depth = self.segments[number as usize].depth;
        let run = 1usize << (self.depth - depth);
        let first = self.slot(place) / run * run;
        let sibling_first = first ^ run;
        let sibling = self.directory[sibling_first];
        let other = &self.segments[sibling as usize];
        let len = (self.segments[number as usize].len + other.len) as usize;
        if other.depth != depth || len > capacity(SEGMENT_BUCKETS_MAX) / 2 {
            return false;
        }
        let mut joined = Segment::new(depth - 1, size_for(len + len / 4));
        for half in [number, sibling] {
            let half = &self.segments[half as usize];
            half.pairs().for_each(|pair| joined.insert(pair));
            self.buckets -= half.buckets.len();
        }
        self.buckets += joined.buckets.len();
        self.at_depth[depth as usize] -= 2;
        self.at_depth[depth as usize - 1] += 1;
        let old = std::mem::replace(&mut self.segments[number as usize], joined);
        self.free(old.buckets);
        self.directory[first.min(sibling_first)..first.max(sibling_first) + run].fill(number);
        self.drop_segment(sibling);
        while self.depth > 0 && self.at_depth[self.depth as usize] == 0 {
            self.directory = self.directory.iter().step_by(2).copied().collect();
            self.depth -= 1;
        }
        true
    }

    /// Frees a segment that the directory no longer names; the last one takes its number.
    fn drop_segment(&mut self, number: u32) {
        let last = self.segments.len() as u32 - 1;
        let old = self.segments.swap_remove(number as usize);
        self.free(old.buckets);
        if number == last {
            return;
        }
        let moved = &self.segments[number as usize];
        let Some(pair) = moved.pairs().next() else {
            // An empty segment names no place: look its run up. Rare, O(directory).
            for slot in &mut self.directory {
                if *slot == last {
                    *slot = number;
                }
            }
            return;
        };
        let run = 1usize << (self.depth - moved.depth);
        let first = self.slot(pair.place) / run * run;
        self.directory[first..first + run].fill(number);
        if self.segments.capacity() > 64 && self.segments.len() < self.segments.capacity() / 4 {
            self.segments.shrink_to(self.segments.capacity() / 2);
        }
    }

    /// Visits entries in the order of places from `cursor` on, at least `count` unless the end is met;
    /// returns the place to go on from.
    pub(crate) fn scan(
        &self,
        cursor: u32,
        count: usize,
        mut visit: impl FnMut(u32),
    ) -> Option<u32> {
        let mut from = cursor;
        let mut seen = 0;
        loop {
            let segment = self.segment(from)?;
            let span = 1u64 << (32 - segment.depth);
            let start = u64::from(from) & !(span - 1);
            for bucket in segment.home(from)..segment.buckets.len() {
                segment.visit_home(bucket, |pair| {
                    if pair.place >= from {
                        seen += 1;
                        visit(pair.id);
                    }
                });
                if seen >= count {
                    // The least place whose home is the next bucket.
                    let scaled = ((bucket as u64 + 1) << 32).div_ceil(segment.buckets.len() as u64);
                    let next = start + scaled.div_ceil(1 << segment.depth).min(span);
                    return u32::try_from(next).ok();
                }
            }
            from = u32::try_from(start + span).ok()?;
        }
    }

    /// An entry near a random place, `None` when empty.
    pub(crate) fn sample(&self, random: u64) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let mut slot = (random >> 32) as usize % self.directory.len();
        let mut turn = random as usize;
        loop {
            let segment = &self.segments[self.directory[slot] as usize];
            let words = segment.buckets.len() * WORDS;
            // Pairs are packed to the front: the next one after a vacant cell would be the first of its
            // bucket, time and again. So draw anew, and go on from cell to cell only when most are vacant.
            for _ in 0..SAMPLE_TRIES {
                turn = turn
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    .rotate_left(32)
                    .wrapping_add(1);
                let i = turn % words;
                let id = segment.buckets[i / WORDS].ids[i % WORDS];
                if id != 0 {
                    return Some(id);
                }
            }
            let found = (0..words).find_map(|i| {
                let i = (turn + i) % words;
                let id = segment.buckets[i / WORDS].ids[i % WORDS];
                (id != 0).then_some(id)
            });
            if found.is_some() {
                return found;
            }
            // Merging keeps empty segments rare.
            slot = (slot + 1) % self.directory.len();
            turn = turn.rotate_left(16);
        }
    }

    /// Panics if the structure is broken. O(n).
    pub(crate) fn validate(&self) {
        let mut len = 0;
        let mut buckets = 0;
        for (number, segment) in self.segments.iter().enumerate() {
            assert_eq!(
                segment.pairs().count(),
                segment.len as usize,
                "segment length"
            );
            len += segment.len as usize;
            buckets += segment.buckets.len();
            for bucket in &segment.buckets {
                let vacant = bucket.ids.iter().skip_while(|id| **id != 0);
                assert!(vacant.clone().all(|id| *id == 0), "a bucket has a gap");
            }
            for pair in segment.pairs() {
                let named = self.directory[self.slot(pair.place)];
                assert_eq!(named as usize, number, "an entry is in the wrong segment");
                let found = segment.find(pair.place, |id| id == pair.id);
                assert!(found.is_some(), "a spilled entry is out of reach");
            }
        }
        assert_eq!(len, self.len, "index length");
        assert_eq!(buckets, self.buckets, "bucket count");
        for &number in &self.directory {
            assert!(
                (number as usize) < self.segments.len(),
                "the directory names no segment"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    fn mix(i: u64) -> u32 {
        let x = (i ^ i >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (x >> 32) as u32
    }

    #[test]
    fn grows_and_shrinks_and_finds_everything() {
        let mut index = Index::new();
        let mut model = HashMap::new();
        for round in 0..3 {
            for id in 1..20_000u32 {
                let place = mix(u64::from(id) * 7 + round);
                if model.insert(id, place).is_none() {
                    index.insert(place, id);
                } else {
                    unreachable!("ids are removed between rounds");
                }
            }
            index.validate();
            assert!(
                index.bytes() < model.len() * 14 + 4096,
                "{} bytes",
                index.bytes()
            );
            for (&id, &place) in &model {
                assert_eq!(index.find(place, |found| found == id), Some(id));
            }
            for (id, place) in model.drain() {
                assert!(index.remove(place, id));
                assert!(!index.remove(place, id));
                if id % 997 == 0 {
                    index.validate();
                }
            }
            assert_eq!(index.len(), 0);
            assert!(
                index.bytes() < 16_384,
                "{} bytes are held by an empty index",
                index.bytes()
            );
        }
    }

    /// Samples fell on the first pair of a bucket several times as often as on the others.
    #[test]
    fn every_entry_is_sampled_about_as_often() {
        let mut index = Index::new();
        for id in 1..=2000 {
            index.insert(mix(u64::from(id)), id);
        }
        let mut drawn = vec![0u32; 2001];
        for i in 0..200_000u64 {
            let random = u64::from(mix(i * 3 + 1)) << 32 | u64::from(mix(i * 5 + 2));
            drawn[index.sample(random).expect("not empty") as usize] += 1;
        }
        let most = drawn.iter().max().copied().unwrap_or(0);
        let never = drawn[1..].iter().filter(|times| **times == 0).count();
        assert!(
            most < 250 && never == 0,
            "most {most} of 100, {never} never"
        );
    }

    #[test]
    fn equal_places_are_kept_apart_by_the_caller() {
        let mut index = Index::new();
        for id in 1..3000 {
            index.insert(42, id);
        }
        index.validate();
        assert_eq!(index.find(42, |id| id == 2999), Some(2999));
        for id in 1..3000 {
            assert!(index.remove(42, id));
        }
        assert_eq!(index.len(), 0);
    }

    #[test]
    fn scan_visits_each_entry_once_though_the_index_grows_and_shrinks() {
        let mut index = Index::new();
        for id in 1..=5000 {
            index.insert(mix(u64::from(id)), id);
        }
        let mut seen = HashSet::new();
        let mut cursor = Some(0);
        let mut extra = 10_000;
        let mut calls = 0;
        while let Some(at) = cursor {
            cursor = index.scan(at, 10, |id| {
                assert!(seen.insert(id), "{id} was visited twice");
            });
            calls += 1;
            for _ in 0..100 {
                if calls < 100 {
                    extra += 1;
                    index.insert(mix(extra), extra as u32);
                } else if extra > 10_000 {
                    index.remove(mix(extra), extra as u32);
                    extra -= 1;
                }
            }
        }
        assert!((1..=5000).all(|id| seen.contains(&id)));
    }
}
