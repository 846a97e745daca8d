//! The hash index: from a hash to an id, in segments that grow, split and merge one at a time.
//!
//! # The picture
//!
//! ```text
//!  directory      segments             a bucket: one cache line
//!  00 ──────────► A [b b b b b b b]    8 ids, and 8 places: 32 bits of each key's hash
//!  01 ──────────► B [b b b]
//!  10 ─┐
//!  11 ─┴────────► C [b b b b b]
//! ```
//!
//! An example: a key's hash has the place `1010…`. The directory has four slots here, so the top
//! two bits choose one: slot `10` leads to segment C. C serves slot `11` too, so all its places
//! begin with `1`, and the next bits, `010…`, say where in C: a quarter of the way from its first
//! bucket to its last, in the second of five. That is the entry's *home* bucket. The look-up
//! compares its eight places at once, and then the keys.
//!
//! # Structure
//!
//! This is extendible hashing. The index knows an entry by 32 bits of its hash, its *place*. A
//! directory maps the top `depth` bits of a place to a segment. A segment is an array of buckets.
//! The home bucket of an entry is the rest of its place, scaled to the number of buckets. So home
//! buckets in order are places in order, throughout the whole index. [`Index::scan`] walks in that
//! order, and its cursor is a place: it stays right when segments grow or split, and when entries
//! move.
//!
//! A full bucket spills into the next one (behind the segment's last bucket comes its first).
//!
//! **Invariant: an entry lies `n` buckets after its home only if the `n` buckets from its home on
//! are full.** A removal moves spilled entries back. So a look-up stops at the first bucket that is
//! not full.
//!
//! # Hashes that are too much alike
//!
//! A split separates entries only where their places differ. Entries whose places begin with many
//! equal bits would take a directory of many bits. So the directory has at most 1,024 slots, or one
//! for every 16 entries if that is more. A segment that is full and may not split hands its entries
//! to the [crowd](Crowd), which is a tree. So memory stays in proportion to the entries. An
//! operation in the crowd takes time in proportion to the entries of the same place. A scan visits
//! all entries of one place in one call, since its cursor is a place.
//!
//! # Cost
//!
//! A segment has at most 512 buckets (32 KiB). It grows by about a fifth at a time, and splits in
//! two when it is full. So no operation touches more than a segment and its sibling, which are
//! 3,072 pairs at most. When the directory doubles, it is copied: 4 bytes a slot, 1/500 byte an
//! entry. A segment grows when it is 3/4 full. Then an entry costs 10.7 to 13.3 bytes, and 14 in
//! the crowd. Fuller buckets cost less memory, and more time: more entries spill. (At 13/16 it was
//! 9.8 to 12.3 bytes, and a hit in a cache of 1,000 entries took a tenth longer.)
//!
//! Source: Fagin et al., "Extendible Hashing" (1979).

mod bucket;
mod crowd;
mod resize;
mod segment;
#[cfg(test)]
mod tests;
mod ways;

pub(crate) use bucket::Bucket;
use bucket::Pair;
use crowd::Crowd;
use segment::{Segment, capacity};
use ways::Guide;

use crate::shared::{Block, Purpose};

/// Buckets of the largest segment.
const SEGMENT_BUCKETS_MAX: usize = 512;

/// A crowded segment gets buckets again when it has this many entries or fewer. That is far fewer
/// than made it crowded, and few enough to join its sibling.
const CROWD_MIN: usize = capacity(SEGMENT_BUCKETS_MAX) / 2;

/// Deepest directory: 2^23 segments hold more entries than ids can name. The number of buckets of
/// all segments, if all were as large as the largest, has 32 bits.
const DEPTH_MAX: u8 = 23;
const _: () = assert!((SEGMENT_BUCKETS_MAX as u64) << DEPTH_MAX <= 1 << 32);

/// Makes other random bits of random bits.
#[inline]
fn scatter(bits: u64) -> u64 {
    bits.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(32)
        .wrapping_add(1)
}

/// Where an entry may be that is not in a segment's buckets. It has the size of an id, so that a
/// look-up returns either in two registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Elsewhere {
    Nowhere,
    /// In the crowd, where [`Index::find_crowded`] looks.
    Crowd,
}

/// Where a look-up begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    /// The first id in the home bucket that is of this place. If it is 0, there is none: so much is
    /// not asked here, since whoever looks at a slot sees that.
    Likely(u32),
    Nowhere,
    /// In another bucket or in the crowd, if anywhere.
    Elsewhere,
}

/// Leads from a place to the ids of the entries there. Ids are never 0. The fields that a look-up
/// reads come first, so that they share a cache line.
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
    /// The entries of segments that are full and may not split.
    crowd: Crowd,
    /// Memory that is no longer needed, if frees are deferred.
    freed: Vec<Block<Bucket>>,
    defers_frees: bool,
    /// The guide for readers without a lock, if there are any.
    guide: Option<Guide>,
    /// Of its blocks.
    purpose: Purpose,
}

/// Memory that an index no longer needs.
#[derive(Debug)]
#[allow(dead_code, reason = "kept to be dropped")]
pub(crate) struct FreedBuckets(Vec<Block<Bucket>>);

impl Index {
    pub(crate) const fn new() -> Self {
        Self {
            directory: Vec::new(),
            depth: 0,
            segments: Vec::new(),
            len: 0,
            buckets: 0,
            at_depth: [0; DEPTH_MAX as usize + 1],
            crowd: Crowd::new(),
            freed: Vec::new(),
            defers_frees: false,
            guide: None,
            purpose: Purpose::OWN,
        }
    }

    /// From now on freed memory waits for [`Index::take_freed`].
    pub(crate) fn defer_frees(&mut self) {
        self.defers_frees = true;
    }

    #[inline]
    pub(crate) fn has_freed(&self) -> bool {
        !self.freed.is_empty()
    }

    #[inline]
    pub(crate) fn take_freed(&mut self) -> Option<FreedBuckets> {
        (!self.freed.is_empty()).then(|| FreedBuckets(std::mem::take(&mut self.freed)))
    }

    fn free(&mut self, buckets: Block<Bucket>) {
        if self.defers_frees {
            self.freed.push(buckets);
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
            + self.crowd.bytes()
            + self.guide.as_ref().map_or(0, Guide::bytes)
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

    /// The first id of this place that `is` accepts. It does not look into the crowd. With two
    /// functions each has a closure of its own, so the compiler can inline it into this one.
    #[inline]
    pub(crate) fn find(&self, place: u32, is: impl FnMut(u32) -> bool) -> Result<u32, Elsewhere> {
        let segment = self.segment(place).ok_or(Elsewhere::Nowhere)?;
        segment.find(place, is)
    }

    /// The first id of this place in the crowd that `is` accepts.
    #[cold]
    pub(crate) fn find_crowded(&self, place: u32, is: impl FnMut(u32) -> bool) -> Option<u32> {
        self.crowd.find(place, is)
    }

    /// Loads the bucket of a place, so that a removal soon after finds it in the cache.
    #[inline]
    pub(crate) fn touch(&self, place: u32) -> u32 {
        let bucket = self
            .segment(place)
            .and_then(|segment| segment.buckets.get(segment.home(place)));
        bucket.map_or(0, |bucket| bucket.id(0))
    }

    #[inline]
    fn home(&self, place: u32) -> Option<&Bucket> {
        let segment = self.segment(place)?;
        segment.buckets.get(segment.home(place))
    }

    /// Asks for the home bucket of a place, and does not wait for it.
    #[inline]
    pub(crate) fn prefetch(&self, place: u32) {
        if let Some(bucket) = self.home(place) {
            crate::prefetch::prefetch(bucket);
        }
    }

    /// As [`prefetch`](Self::prefetch), with the bucket into which the home bucket spills: for who
    /// will change what is there.
    #[inline]
    pub(crate) fn prefetch_run(&self, place: u32) {
        let Some(segment) = self.segment(place) else {
            return;
        };
        let home = segment.home(place);
        for bucket in segment.buckets.iter().skip(home).take(2) {
            crate::prefetch::prefetch(bucket);
        }
    }

    /// Where to look first. Nearly all look-ups end there.
    #[inline(always)]
    pub(crate) fn first(&self, place: u32) -> First {
        let Some(segment) = self.segment(place) else {
            return First::Nowhere;
        };
        let Some(bucket) = segment.buckets.get(segment.home(place)) else {
            return First::Elsewhere;
        };
        match bucket.likely(place) {
            Some(id) => First::Likely(id),
            None if bucket.is_full() => First::Elsewhere,
            None => First::Nowhere,
        }
    }

    /// The place of a stored id, found by a walk. O(n).
    #[cold]
    pub(crate) fn place_of(&self, id: u32) -> Option<u32> {
        let pairs = self.segments.iter().flat_map(Segment::pairs);
        let mut pairs = pairs.chain(self.crowd.pairs(0..=u32::MAX));
        pairs.find(|pair| pair.id == id).map(|pair| pair.place)
    }

    pub(crate) fn insert(&mut self, place: u32, id: u32) {
        self.put(place, id);
    }

    #[inline(always)]
    fn put(&mut self, place: u32, id: u32) {
        debug_assert_ne!(id, 0, "id 0 marks a vacant pair");
        if self.directory.is_empty() {
            self.directory.push(0);
            self.segments.push(Segment::new(0, 0, 1, self.purpose));
            self.buckets = 1;
            self.at_depth[0] = 1;
            self.publish_all();
        }
        self.len += 1;
        loop {
            let number = self.directory[self.slot(place)];
            let segment = &mut self.segments[number as usize];
            if (segment.len as usize) < capacity(segment.buckets.len()) {
                return segment.insert(Pair { place, id });
            }
            if !self.make_room(number, place) {
                self.segments[number as usize].len += 1;
                return self.crowd.insert(Pair { place, id });
            }
        }
    }

    /// Exchanges the id of an entry that has moved.
    pub(crate) fn replace(&mut self, place: u32, old: u32, new: u32) {
        let number = self.directory[self.slot(place)];
        let segment = &mut self.segments[number as usize];
        if let Some((bucket, i)) = segment.position(Pair { place, id: old }) {
            segment.buckets[bucket].set_id(i, new);
        } else if segment.is_crowded() && self.crowd.remove(Pair { place, id: old }) {
            self.crowd.insert(Pair { place, id: new });
        } else {
            debug_assert!(false, "a moved entry is in the index");
        }
    }

    pub(crate) fn remove(&mut self, place: u32, id: u32) -> bool {
        self.take(place, id)
    }

    #[inline(always)]
    fn take(&mut self, place: u32, id: u32) -> bool {
        let Some(&number) = self.directory.get(self.slot(place)) else {
            return false;
        };
        let segment = &mut self.segments[number as usize];
        if segment.is_crowded() {
            return self.remove_crowded(number, Pair { place, id });
        }
        if !segment.remove(Pair { place, id }) {
            return false;
        }
        self.len -= 1;
        let (len, buckets) = (segment.len as usize, segment.buckets.len());
        // It has half of what it may hold: make it smaller, or join it with its sibling.
        if len < capacity(buckets) / 2 && (buckets > 1 || segment.depth > 0) {
            self.shrink(number);
        }
        true
    }

    #[cold]
    fn remove_crowded(&mut self, number: u32, pair: Pair) -> bool {
        if !self.crowd.remove(pair) {
            return false;
        }
        self.len -= 1;
        let segment = &mut self.segments[number as usize];
        segment.len -= 1;
        if segment.len as usize <= CROWD_MIN {
            self.uncrowd(number);
        }
        true
    }

    /// An id goes on with the key of another place. `false`, and nothing is done, if it was not at
    /// the old one.
    pub(crate) fn exchange(&mut self, old: u32, new: u32, id: u32) -> bool {
        let was_there = self.take(old, id);
        if was_there {
            self.put(new, id);
        }
        was_there
    }

    /// Visits entries in the order of places, from `cursor` on: at least `count`, or all up to the
    /// end. Returns the place to go on from. All entries of one place are visited by one call.
    pub(crate) fn scan(
        &self,
        cursor: u32,
        count: usize,
        mut visit: impl FnMut(u32),
    ) -> Option<u32> {
        let mut wanted = count;
        self.scan_while(cursor, |id| {
            visit(id);
            wanted = wanted.saturating_sub(1);
            wanted > 0
        })
    }

    /// As [`scan`](Self::scan), until `visit` returns false. It still visits the rest of the
    /// bucket.
    pub(crate) fn scan_while(
        &self,
        cursor: u32,
        mut visit: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let mut from = cursor;
        let mut enough = false;
        loop {
            let segment = self.segment(from)?;
            let places = from..=*segment.places().end();
            let next = if segment.is_crowded() {
                self.crowd.scan(places.clone(), &mut enough, &mut visit)
            } else {
                segment.scan(from, &mut enough, &mut visit)
            };
            if next.is_some() {
                return next;
            }
            from = places.end().checked_add(1)?;
            if enough {
                return Some(from);
            }
        }
    }

    /// An entry near a random place, `None` when empty.
    pub(crate) fn sample(&self, random: u64) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let mut slot = (random >> 32) as usize % self.directory.len();
        let mut turn = random;
        loop {
            let segment = &self.segments[self.directory[slot] as usize];
            let found = if segment.is_crowded() {
                self.crowd.sample(segment.places(), scatter(turn))
            } else {
                segment.sample(&mut turn)
            };
            if found.is_some() {
                return found;
            }
            // Merging keeps empty segments rare: on to the next one.
            let run = 1 << (self.depth - segment.depth);
            slot = (slot / run + 1) * run % self.directory.len();
            turn = turn.rotate_left(16);
        }
    }

    /// Panics if the structure is broken. O(n).
    // Compiled with tests only.
    #[inline]
    pub(crate) fn validate(&self) {
        let (mut len, mut buckets, mut crowded, mut slot) = (0, 0, 0, 0);
        let mut at_depth = [0; DEPTH_MAX as usize + 1];
        // By the directory's runs, so that each segment is met once, in the order of places.
        while let Some(&number) = self.directory.get(slot) {
            let segment = &self.segments[number as usize];
            let run = 1 << (self.depth - segment.depth);
            assert_eq!(self.slot(segment.start), slot, "a run is out of its place");
            let named = self.directory[slot..slot + run].iter();
            assert!(named.clone().all(|n| *n == number), "a run is broken");
            segment.validate();
            if segment.is_crowded() {
                let len = self.crowd.pairs(segment.places()).count();
                assert_eq!(len, segment.len as usize, "crowd length");
                assert!(len > CROWD_MIN, "too few for a crowd");
                crowded += len;
            }
            len += segment.len as usize;
            buckets += segment.buckets.len();
            at_depth[segment.depth as usize] += 1;
            slot += run;
        }
        assert_eq!(len, self.len, "index length");
        assert_eq!(buckets, self.buckets, "bucket count");
        assert_eq!(crowded, self.crowd.len(), "the crowd has strangers");
        assert_eq!(at_depth, self.at_depth, "depths");
        let named: u32 = at_depth.iter().sum();
        assert_eq!(named as usize, self.segments.len(), "a segment has no name");
    }
}
