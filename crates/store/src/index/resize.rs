//! Resizing: segments grow, split, join, and move to the crowd.

use super::bucket::Pair;
use super::segment::{Segment, capacity, next_size, size_for};
use super::{DEPTH_MAX, Index, SEGMENT_BUCKETS_MAX};

/// Slots that a directory may always have, even for few entries: 4 KiB.
pub(super) const DIRECTORY_SLOTS_MIN: usize = 1024;

/// A larger directory doubles only while there are at least this many entries for each slot. With
/// well-mixed hashes there are about 1,700.
const ENTRIES_PER_SLOT: usize = 16;

impl Index {
    /// Lets a full segment grow, or splits it; `false` when it is crowded.
    #[cold]
    pub(super) fn make_room(&mut self, number: u32, place: u32) -> bool {
        let segment = &mut self.segments[number as usize];
        let buckets = segment.buckets.len();
        if segment.is_crowded() {
            return false;
        }
        if buckets < SEGMENT_BUCKETS_MAX {
            let larger = next_size(buckets);
            let old = segment.resize(larger, self.purpose);
            self.publish(number);
            self.free(old);
            self.buckets += larger - buckets;
            return true;
        }
        let segment = &self.segments[number as usize];
        if self.may_split(segment.depth) && !segment.is_all(place) {
            self.split(number);
            return true;
        }
        self.crowd_out(number);
        false
    }

    /// Returns whether a segment of this depth may be split. That may double the directory, which
    /// must stay in proportion to the entries.
    fn may_split(&self, depth: u8) -> bool {
        let slots = self.directory.len() * 2;
        depth < self.depth
            || depth < DEPTH_MAX && slots <= DIRECTORY_SLOTS_MIN.max(self.len / ENTRIES_PER_SLOT)
    }

    /// Hands a segment's entries over to the crowd.
    #[cold]
    fn crowd_out(&mut self, number: u32) {
        let segment = &mut self.segments[number as usize];
        let mut crowded = Segment::new(segment.start, segment.depth, 0, self.purpose);
        crowded.len = segment.len;
        let old = std::mem::replace(segment, crowded);
        self.publish(number);
        old.pairs().for_each(|pair| self.crowd.insert(pair));
        self.buckets -= old.buckets.len();
        self.free(old.buckets);
    }

    /// Gives a segment that was crowded buckets of its own again.
    #[cold]
    pub(super) fn uncrowd(&mut self, number: u32) {
        let segment = &mut self.segments[number as usize];
        let len = segment.len as usize;
        let (start, depth) = (segment.start, segment.depth);
        let mut own = Segment::new(start, depth, size_for(len + len / 4), self.purpose);
        own.fill(self.crowd.take(segment.places()));
        self.buckets += own.buckets.len();
        *segment = own;
        self.publish(number);
    }

    #[cold]
    pub(super) fn shrink(&mut self, number: u32) {
        let segment = &mut self.segments[number as usize];
        let (len, buckets) = (segment.len as usize, segment.buckets.len());
        if segment.depth > 0 && len <= capacity(SEGMENT_BUCKETS_MAX) / 4 && self.merge(number) {
            return;
        }
        let segment = &mut self.segments[number as usize];
        let smaller = size_for(len + len / 4);
        if smaller < buckets {
            let old = segment.resize(smaller, self.purpose);
            self.publish(number);
            self.free(old);
            self.buckets -= buckets - smaller;
        }
    }

    #[cold]
    fn split(&mut self, number: u32) {
        let old_depth = self.segments[number as usize].depth;
        let doubles = old_depth == self.depth;
        if doubles {
            self.directory = self.directory.iter().flat_map(|&n| [n, n]).collect();
            self.depth += 1;
        }
        let depth = old_depth + 1;
        let old = &self.segments[number as usize];
        let upper = |pair: Pair| pair.place >> (32 - depth) & 1 == 1;
        let upper_len = old.pairs().filter(|pair| upper(*pair)).count();
        let middle = old.start | 1 << (32 - depth);
        let purpose = self.purpose;
        let mut halves = [
            Segment::new(
                old.start,
                depth,
                size_for(old.len as usize - upper_len),
                purpose,
            ),
            Segment::new(middle, depth, size_for(upper_len), purpose),
        ];
        let [low, high] = &mut halves;
        low.fill(old.pairs().filter(|pair| !upper(*pair)));
        high.fill(old.pairs().filter(|pair| upper(*pair)));
        self.buckets -= old.buckets.len();
        self.buckets += halves[0].buckets.len() + halves[1].buckets.len();
        self.at_depth[old_depth as usize] -= 1;
        self.at_depth[depth as usize] += 2;
        let [low, high] = halves;
        let old = std::mem::replace(&mut self.segments[number as usize], low);
        let new = self.segments.len() as u32;
        self.segments.push(high);
        // The upper half of the run of directory slots that led to the old segment.
        let run = 1usize << (self.depth - old_depth);
        let first = self.slot(self.segments[number as usize].start);
        self.directory[first + run / 2..first + run].fill(new);
        if doubles {
            self.publish_all();
        } else {
            self.publish(number);
            self.publish(new);
        }
        self.free(old.buckets);
    }

    /// Joins a segment with its sibling if both are nearly empty.
    fn merge(&mut self, number: u32) -> bool {
        let segment = &self.segments[number as usize];
        let (depth, start) = (segment.depth, segment.start);
        let run = 1usize << (self.depth - depth);
        let first = self.slot(start);
        let sibling_first = first ^ run;
        let sibling = self.directory[sibling_first];
        let other = &self.segments[sibling as usize];
        let len = (segment.len + other.len) as usize;
        if other.depth != depth || len > capacity(SEGMENT_BUCKETS_MAX) / 2 {
            return false;
        }
        let (start, buckets) = (start.min(other.start), size_for(len + len / 4));
        let mut joined = Segment::new(start, depth - 1, buckets, self.purpose);
        let halves = [number, sibling].map(|half| &self.segments[half as usize]);
        joined.fill(halves.iter().flat_map(|half| half.pairs()));
        self.buckets += joined.buckets.len();
        self.buckets -= halves.iter().map(|half| half.buckets.len()).sum::<usize>();
        self.at_depth[depth as usize] -= 2;
        self.at_depth[depth as usize - 1] += 1;
        let old = std::mem::replace(&mut self.segments[number as usize], joined);
        self.directory[first.min(sibling_first)..first.max(sibling_first) + run].fill(number);
        self.publish(number);
        self.free(old.buckets);
        self.drop_segment(sibling);
        let depth = self.depth;
        while self.depth > 0 && self.at_depth[self.depth as usize] == 0 {
            self.directory = self.directory.iter().step_by(2).copied().collect();
            self.depth -= 1;
        }
        if self.depth < depth {
            self.publish_all();
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
        let run = 1usize << (self.depth - moved.depth);
        let first = self.slot(moved.start);
        self.directory[first..first + run].fill(number);
        if self.segments.capacity() > 64 && self.segments.len() < self.segments.capacity() / 4 {
            self.segments.shrink_to(self.segments.capacity() / 2);
        }
    }
}
