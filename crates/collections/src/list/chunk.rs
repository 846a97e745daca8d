//! A chunk of a large list: a few kilobytes of elements with room at both ends.
//!
//! ```text
//! |  free  | data … |  free  | … column of lengths |  free  |
//! ```
//!
//! A new last element and its length go to the middle, a new first element and its length to the
//! outer ends. If there is no room on the side that needs it, the chunk is laid out anew: larger,
//! or with the free bytes on that side.

use super::packed::PackedListRef;
use super::run::{Run, RunSize, RunSpot, put_len};
use crate::shared::Shared;

/// The least bytes of a chunk that grows.
const CHUNK_MIN: usize = 512;

#[derive(Debug, Clone)]
pub(super) struct Chunk {
    bytes: Shared<Box<[u8]>>,
    /// Where data and column begin and end.
    data: u32,
    data_end: u32,
    lens: u32,
    lens_end: u32,
    count: u32,
}

/// Where the free bytes of a chunk are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Free {
    Front,
    Back,
}

impl Chunk {
    pub(super) fn new() -> Self {
        Self {
            bytes: Shared::Own(Box::default()),
            data: 0,
            data_end: 0,
            lens: 0,
            lens_end: 0,
            count: 0,
        }
    }

    pub(super) fn of_packed(packed: PackedListRef<'_>) -> Self {
        let run = packed.run();
        Self::of_run(run, run.size().bytes(), Free::Back)
    }

    /// A chunk of `room` bytes with these elements.
    fn of_run(run: Run<'_>, room: usize, free: Free) -> Self {
        let size = run.size();
        let mut bytes = vec![0; room].into_boxed_slice();
        let spare = room - size.bytes();
        let (front, end) = match free {
            Free::Back => (0, room),
            // The outer ends share the free bytes as data and lengths do.
            Free::Front => {
                let behind = spare * size.lens / size.bytes().max(1);
                (spare - behind, room - behind)
            }
        };
        bytes[front..front + size.data].copy_from_slice(run.data());
        bytes[end - size.lens..end].copy_from_slice(run.lens());
        Self {
            bytes: Shared::Own(bytes),
            data: front as u32,
            data_end: (front + size.data) as u32,
            lens: (end - size.lens) as u32,
            lens_end: end as u32,
            count: size.count as u32,
        }
    }

    /// A chunk with the same elements, which shares its bytes until one of the two is changed.
    pub(super) fn share(&mut self) -> Self {
        let bytes = self.bytes.share();
        Self { bytes, ..*self }
    }

    #[inline]
    pub(super) fn run(&self) -> Run<'_> {
        Run::new(
            &self.bytes[self.data as usize..self.data_end as usize],
            &self.bytes[self.lens as usize..self.lens_end as usize],
            self.count as usize,
        )
    }

    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    pub(super) fn size(&self) -> RunSize {
        self.run().size()
    }

    /// Heap bytes held.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds an element at a spot. `room` is what a chunk may take.
    pub(super) fn insert(&mut self, spot: RunSpot, element: &[u8], room: usize) {
        let added = RunSize::of(element);
        if spot.data == 0 && spot.lens == 0 && self.count > 0 {
            return self.insert_front(element, added, room);
        }
        if ((self.lens - self.data_end) as usize) < added.bytes() {
            self.lay_out(added, room, Free::Back);
        }
        let at = self.data as usize + spot.data;
        let data_end = self.data_end as usize;
        self.bytes.copy_within(at..data_end, at + added.data);
        self.bytes[at..at + added.data].copy_from_slice(element);
        self.data_end += added.data as u32;

        let (lens, end) = (self.lens as usize, self.lens_end as usize - spot.lens);
        self.bytes.copy_within(lens..end, lens - added.lens);
        put_len(&mut self.bytes[end - added.lens..end], added.data);
        self.lens -= added.lens as u32;
        self.count += 1;
    }

    fn insert_front(&mut self, element: &[u8], added: RunSize, room: usize) {
        let behind = self.bytes.len() - self.lens_end as usize;
        if (self.data as usize) < added.data || behind < added.lens {
            self.lay_out(added, room, Free::Front);
        }
        let at = self.data as usize - added.data;
        self.bytes[at..at + added.data].copy_from_slice(element);
        self.data = at as u32;
        let end = self.lens_end as usize;
        put_len(&mut self.bytes[end..end + added.lens], added.data);
        self.lens_end += added.lens as u32;
        self.count += 1;
    }

    /// Removes the elements of this size behind a spot. The ends move nothing.
    pub(super) fn remove(&mut self, spot: RunSpot, gone: RunSize) {
        if spot.data == 0 && spot.lens == 0 {
            self.data += gone.data as u32;
            self.lens_end -= gone.lens as u32;
        } else {
            let at = self.data as usize + spot.data;
            let data_end = self.data_end as usize;
            self.bytes.copy_within(at + gone.data..data_end, at);
            self.data_end -= gone.data as u32;
            let (lens, end) = (self.lens as usize, self.lens_end as usize - spot.lens);
            self.bytes
                .copy_within(lens..end - gone.lens, lens + gone.lens);
            self.lens += gone.lens as u32;
        }
        self.count -= gone.count as u32;
    }

    /// Exchanges the element behind a spot for one of the same length; returns whether it could.
    pub(super) fn overwrite(&mut self, spot: RunSpot, element: &[u8]) -> bool {
        let fits = self.run().size_at(spot).data == element.len();
        if fits {
            let at = self.data as usize + spot.data;
            self.bytes[at..at + element.len()].copy_from_slice(element);
        }
        fits
    }

    /// Cuts off the elements from a spot on.
    pub(super) fn split_off(&mut self, spot: RunSpot, count: usize) -> Self {
        let run = self.run();
        let cut = run.between(spot, run.end(), self.len() - count);
        let right = Self::of_run(cut, cut.size().bytes(), Free::Back);
        let left = run.between(RunSpot::default(), spot, count);
        *self = Self::of_run(left, left.size().bytes(), Free::Back);
        right
    }

    /// Takes over the elements of the chunk behind it.
    pub(super) fn append(&mut self, right: &Self) {
        let (left, right) = (self.run(), right.run());
        let room = left.size().bytes() + right.size().bytes();
        let mut joined = Self::of_run(left, room, Free::Back);
        let (at, lens) = (joined.data_end as usize, right.lens().len());
        joined.bytes[at..at + right.data().len()].copy_from_slice(right.data());
        let column = joined.lens as usize - lens;
        joined.bytes[column..column + lens].copy_from_slice(right.lens());
        joined.data_end += right.data().len() as u32;
        joined.lens = column as u32;
        joined.count += right.len() as u32;
        *self = joined;
    }

    /// Keeps the elements that `keep` accepts.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&[u8]) -> bool) {
        let mut kept = Self::new();
        let room = self.size().bytes();
        for element in self.run().filter(|element| keep(element)) {
            kept.insert(kept.run().end(), element, room);
        }
        *self = kept;
        self.fit();
    }

    /// Gives back what it does not use, if less than so many eighths are in use.
    pub(super) fn tighten(&mut self, eighths: usize) {
        if self.size().bytes() * 8 < self.bytes.len() * eighths {
            self.fit();
        }
    }

    fn fit(&mut self) {
        *self = Self::of_run(self.run(), self.size().bytes(), Free::Back);
    }

    /// Makes room for an element.
    fn lay_out(&mut self, added: RunSize, room: usize, free: Free) {
        let needed = self.size().bytes() + added.bytes();
        let held = self.bytes.len();
        let larger = (held + held / 2).max(CHUNK_MIN).min(room).max(needed);
        let total = if needed <= held { held } else { larger };
        *self = Self::of_run_with_room(self.run(), total, added, free);
    }

    /// As [`of_run`](Self::of_run), with room for one more element where the free bytes are to be.
    fn of_run_with_room(run: Run<'_>, total: usize, added: RunSize, free: Free) -> Self {
        let mut chunk = Self::of_run(run, total, free);
        let behind = total - chunk.lens_end as usize;
        let front = chunk.data as usize;
        if free == Free::Front && (behind < added.lens || front < added.data) {
            // The shares of data and lengths do not suit this element: exactly what it needs, and
            // the rest in front.
            let spare = total - run.size().bytes();
            let behind = behind.clamp(added.lens, spare - added.data);
            chunk.shift(spare - behind, total - behind, run);
        }
        chunk
    }

    fn shift(&mut self, data: usize, lens_end: usize, run: Run<'_>) {
        let size = run.size();
        self.bytes[data..data + size.data].copy_from_slice(run.data());
        self.bytes[lens_end - size.lens..lens_end].copy_from_slice(run.lens());
        (self.data, self.data_end) = (data as u32, (data + size.data) as u32);
        (self.lens, self.lens_end) = ((lens_end - size.lens) as u32, lens_end as u32);
    }
}
