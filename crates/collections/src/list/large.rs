//! A large list: a deque of chunks.
//!
//! Each operation touches one chunk, or two neighbours. To find an index, to remove and to split in
//! the middle passes over the table of chunks, from the nearer end: 40 bytes for each chunk of 8
//! KiB.

use std::collections::VecDeque;

use super::chunk::Chunk;
use super::limits::ListLimits;
use super::packed::PackedListRef;
use super::run::{Run, RunSize, RunSpot};

/// A list in chunks. It is read by [`ListRef`](super::ListRef) and changed by
/// [`List`](super::List).
#[derive(Debug, Clone)]
pub struct LargeList {
    chunks: VecDeque<Chunk>,
    len: usize,
    /// Bytes of all chunks.
    held: usize,
}

impl LargeList {
    pub(super) fn of_packed(packed: PackedListRef<'_>) -> Self {
        let mut list = Self {
            chunks: VecDeque::new(),
            len: packed.len(),
            held: 0,
        };
        if !packed.is_empty() {
            list.put(0, Chunk::of_packed(packed));
        }
        list
    }

    /// A list with the same elements, which shares their bytes until one of the two is changed. A
    /// step for each chunk.
    pub(super) fn share(&mut self) -> Self {
        Self {
            chunks: self.chunks.iter_mut().map(Chunk::share).collect(),
            ..*self
        }
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of chunks.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Heap bytes held. O(1).
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.held + self.chunks.capacity() * size_of::<Chunk>()
    }

    /// The elements, if one chunk has them all.
    pub(super) fn only_run(&self) -> Option<Run<'_>> {
        let only = self.chunks.front().filter(|_| self.chunks.len() == 1);
        only.map(Chunk::run)
    }

    /// The chunks' elements from chunk `from` on.
    pub(super) fn runs(&self, from: usize) -> impl Iterator<Item = Run<'_>> + Clone {
        self.chunks
            .range(from.min(self.chunks.len())..)
            .map(Chunk::run)
    }

    /// The elements of the chunks before chunk `end`, the last chunk first.
    pub(super) fn runs_before(&self, end: usize) -> impl Iterator<Item = Run<'_>> + Clone {
        self.chunks.range(..end).rev().map(Chunk::run)
    }

    /// The chunk of an element, and its index there. The length leads to behind the last one.
    pub(super) fn locate(&self, index: usize) -> (usize, usize) {
        if index < self.len / 2 {
            let mut rest = index;
            for (number, chunk) in self.chunks.iter().enumerate() {
                if rest < chunk.len() {
                    return (number, rest);
                }
                rest -= chunk.len();
            }
        }
        let mut start = self.len;
        for (number, chunk) in self.chunks.iter().enumerate().rev() {
            start -= chunk.len();
            if index >= start {
                return (number, index - start);
            }
        }
        (0, 0)
    }

    pub(super) fn get(&self, index: usize) -> Option<&[u8]> {
        if index >= self.len {
            return None;
        }
        let (chunk, index) = self.locate(index);
        self.chunks[chunk].run().get(index)
    }

    /// Adds an element in front of the one at `index`.
    pub(super) fn insert(&mut self, index: usize, element: &[u8], limits: &ListLimits) {
        let (chunk, index) = self.locate(index);
        self.len += 1;
        if self.insert_into(chunk, index, element, limits) {
            return;
        }
        // It goes to a neighbour, or into a chunk of its own: between two chunks, or between the
        // halves of one.
        let at = match index {
            0 => chunk,
            _ if index == self.chunk_len(chunk) => chunk + 1,
            _ => {
                self.split(chunk, index);
                chunk + 1
            }
        };
        let end = at
            .checked_sub(1)
            .map(|before| (before, self.chunk_len(before)));
        if end.is_some_and(|(before, end)| self.insert_into(before, end, element, limits))
            || self.insert_into(at, 0, element, limits)
        {
            return;
        }
        self.begin_chunk(at, element, limits);
    }

    fn chunk_len(&self, chunk: usize) -> usize {
        self.chunks.get(chunk).map_or(0, Chunk::len)
    }

    /// Adds an element to a chunk if that may hold it.
    fn insert_into(
        &mut self,
        chunk: usize,
        index: usize,
        element: &[u8],
        limits: &ListLimits,
    ) -> bool {
        let Some(chunk) = self.chunks.get_mut(chunk) else {
            return false;
        };
        let fits = limits.holds(chunk.size() + RunSize::of(element));
        if fits {
            self.held -= chunk.heap_bytes();
            chunk.insert(chunk.run().spot(index), element, limits.room());
            self.held += chunk.heap_bytes();
        }
        fits
    }

    /// Adds a chunk with one element. The neighbour that was an end is full, and gives back what it
    /// does not use.
    fn begin_chunk(&mut self, at: usize, element: &[u8], limits: &ListLimits) {
        let was_end = if at == 0 { 0 } else { at - 1 };
        self.change(was_end, |chunk| chunk.tighten(7));
        let mut chunk = Chunk::new();
        chunk.insert(RunSpot::default(), element, limits.room());
        self.put(at, chunk);
    }

    fn put(&mut self, at: usize, chunk: Chunk) {
        self.held += chunk.heap_bytes();
        self.chunks.insert(at, chunk);
    }

    fn split(&mut self, chunk: usize, index: usize) {
        let mut right = None;
        self.change(chunk, |left| {
            right = Some(left.split_off(left.run().spot(index), index));
        });
        if let Some(right) = right {
            self.put(chunk + 1, right);
        }
    }

    /// Changes a chunk, and counts its bytes and elements anew.
    fn change(&mut self, chunk: usize, change: impl FnOnce(&mut Chunk)) {
        if let Some(chunk) = self.chunks.get_mut(chunk) {
            self.held -= chunk.heap_bytes();
            change(chunk);
            self.held += chunk.heap_bytes();
        }
    }

    /// Exchanges the element at `index`.
    pub(super) fn set(&mut self, index: usize, element: &[u8], limits: &ListLimits) {
        let (chunk, at) = self.locate(index);
        let chunk = &mut self.chunks[chunk];
        if !chunk.overwrite(chunk.run().spot(at), element) {
            self.remove(index, 1, limits);
            self.insert(index, element, limits);
        }
    }

    /// Removes `count` elements from `index` on. O(chunks that go), and O(chunk) twice.
    pub(super) fn remove(&mut self, index: usize, count: usize, limits: &ListLimits) {
        let (first, at) = self.locate(index);
        let mut left = count.min(self.len - index);
        self.len -= left;
        let mut start = first;
        let here = left.min(self.chunk_len(first) - at);
        if here < self.chunk_len(first) {
            self.cut(first, at, here);
            left -= here;
            start += 1;
        }
        // Whole chunks go together: the table moves once.
        let mut end = start;
        while left > 0 && self.chunk_len(end) <= left {
            left -= self.chunk_len(end);
            self.held -= self.chunks[end].heap_bytes();
            end += 1;
        }
        self.chunks.drain(start..end);
        if left > 0 {
            self.cut(start, 0, left);
        }
        self.settle(first, limits);
    }

    fn cut(&mut self, chunk: usize, at: usize, count: usize) {
        self.change(chunk, |chunk| {
            let run = chunk.run();
            let spot = run.spot(at);
            let gone = if count == 1 {
                run.size_at(spot)
            } else {
                let end = run.spot(at + count);
                run.between(spot, end, count).size()
            };
            chunk.remove(spot, gone);
            chunk.tighten(2);
        });
    }

    /// Removes the elements that `gone` accepts: the first `max` from the front, or from the back.
    /// Returns how many.
    pub(super) fn remove_matches(
        &mut self,
        gone: impl Fn(&[u8]) -> bool,
        max: usize,
        from_back: bool,
        limits: &ListLimits,
    ) -> usize {
        let mut removed = 0;
        for turn in 0..self.chunks.len() {
            if removed == max {
                break;
            }
            let chunk = if from_back {
                self.chunks.len() - 1 - turn
            } else {
                turn
            };
            let matches = self.chunks[chunk].run().filter(|e| gone(e)).count();
            let here = matches.min(max - removed);
            if here == 0 {
                continue;
            }
            removed += here;
            // From the back, the first matches of the chunk may be those that stay.
            let stay = if from_back { matches - here } else { 0 };
            let mut met = 0;
            self.change(chunk, |chunk| {
                chunk.retain(|element| {
                    let matched = gone(element);
                    met += usize::from(matched);
                    !(matched && met > stay && met <= stay + here)
                });
            });
        }
        self.len -= removed;
        if removed > 0 {
            self.join_all(limits);
        }
        removed
    }

    /// Drops empty chunks, and joins small neighbours. O(chunks).
    fn join_all(&mut self, limits: &ListLimits) {
        let chunks = std::mem::take(&mut self.chunks);
        self.held = 0;
        for chunk in chunks {
            if chunk.len() == 0 {
                continue;
            }
            match self.chunks.back_mut() {
                Some(last) if limits.joins(last.size() + chunk.size()) => {
                    self.held -= last.heap_bytes();
                    last.append(&chunk);
                    self.held += last.heap_bytes();
                }
                _ => {
                    self.held += chunk.heap_bytes();
                    self.chunks.push_back(chunk);
                }
            }
        }
        self.chunks.shrink_to_fit();
    }

    /// Joins a chunk with its neighbours where one is enough.
    fn settle(&mut self, chunk: usize, limits: &ListLimits) {
        if self.joins(chunk, limits) {
            self.join(chunk);
        }
        if chunk > 0 && self.joins(chunk - 1, limits) {
            self.join(chunk - 1);
        }
        if self.chunks.capacity() > 4 * self.chunks.len() + 4 {
            self.chunks.shrink_to(2 * self.chunks.len());
        }
    }

    fn joins(&self, left: usize, limits: &ListLimits) -> bool {
        let sizes = self.chunks.get(left).zip(self.chunks.get(left + 1));
        sizes.is_some_and(|(left, right)| limits.joins(left.size() + right.size()))
    }

    fn join(&mut self, left: usize) {
        if let Some(right) = self.chunks.remove(left + 1) {
            self.held -= right.heap_bytes();
            self.change(left, |left| left.append(&right));
        }
    }

    /// Panics if the structure is broken. O(n).
    pub(super) fn validate(&self, limits: &ListLimits) {
        let (mut len, mut held) = (0, 0);
        for chunk in &self.chunks {
            chunk.run().validate();
            assert!(chunk.len() > 0, "an empty chunk");
            assert!(limits.holds(chunk.size()), "a chunk is too large");
            len += chunk.len();
            held += chunk.heap_bytes();
        }
        assert_eq!((len, held), (self.len, self.held), "elements and bytes");
    }
}
