//! A small list in one string of bytes.
//!
//! ```text
//! bytes 0–1   the number of elements
//! bytes 2–3   bytes of the column of lengths
//! data        the elements
//! column      their lengths, the last one's first: see `run`
//! ```
//!
//! The bytes are always our own: whoever loads bytes of others pushes their elements one by one.

use super::run::{Run, RunSize, RunSpot, put_len};

const HEADER: usize = 4;

/// A packed list, for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedListRef<'a>(&'a [u8]);

impl<'a> PackedListRef<'a> {
    /// The list that these bytes are: those of a [`PackedList`]. No bytes are no elements.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the number of elements. O(1).
    #[must_use]
    pub fn len(self) -> usize {
        self.number(0)
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    fn number(self, at: usize) -> usize {
        let bytes = self.0.get(at..at + 2);
        bytes.map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]).into())
    }

    #[inline]
    pub(super) fn run(self) -> Run<'a> {
        let column = self.number(2);
        let Some(end) = self
            .0
            .len()
            .checked_sub(column)
            .filter(|end| *end >= HEADER)
        else {
            return Run::default();
        };
        Run::new(&self.0[HEADER..end], &self.0[end..], self.len())
    }
}

/// A packed list, for changes.
///
/// A change moves the bytes behind it: O(bytes). It allocates only when the string grows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedList(Vec<u8>);

impl PackedList {
    /// No elements.
    #[must_use]
    pub fn new() -> Self {
        Self::reuse(Vec::new())
    }

    /// No elements, in memory at hand.
    #[must_use]
    pub fn reuse(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        bytes.extend([0; HEADER]);
        Self(bytes)
    }

    /// The list that these bytes are: those of a [`PackedList`].
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        debug_assert!(bytes.len() >= HEADER, "no list is as short");
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Heap bytes held.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.0.capacity()
    }

    /// For reading.
    #[inline]
    #[must_use]
    pub fn get(&self) -> PackedListRef<'_> {
        PackedListRef(&self.0)
    }

    pub(super) fn of_run(run: Run<'_>) -> Self {
        let mut bytes = Vec::with_capacity(HEADER + run.size().bytes());
        bytes.extend([0; HEADER]);
        bytes.extend_from_slice(run.data());
        bytes.extend_from_slice(run.lens());
        let mut list = Self(bytes);
        list.set_header(run.size());
        list
    }

    /// Returns whether the header can count these.
    pub(super) fn can_count(size: RunSize) -> bool {
        size.count.max(size.lens) <= u16::MAX.into()
    }

    pub(super) fn insert(&mut self, spot: RunSpot, element: &[u8]) {
        let size = self.get().run().size();
        let added = RunSize::of(element);
        let column = HEADER + size.data;
        let at = HEADER + spot.data;
        let len_at = column + size.lens - spot.lens;
        self.reserve(added.bytes());
        let end = self.0.len();
        self.0.resize(end + added.bytes(), 0);
        self.0.copy_within(len_at..end, len_at + added.bytes());
        self.0.copy_within(at..len_at, at + added.data);
        self.0[at..at + added.data].copy_from_slice(element);
        let len_at = len_at + added.data;
        put_len(&mut self.0[len_at..len_at + added.lens], element.len());
        self.set_header(RunSize {
            data: size.data + added.data,
            lens: size.lens + added.lens,
            count: size.count + 1,
        });
    }

    /// Removes the elements of this size behind a spot.
    pub(super) fn remove(&mut self, spot: RunSpot, gone: RunSize) {
        let size = self.get().run().size();
        let at = HEADER + spot.data;
        let len_at = HEADER + size.data + size.lens - spot.lens;
        // The lengths first: they lie behind.
        self.0.copy_within(len_at.., len_at - gone.lens);
        self.0.truncate(self.0.len() - gone.lens);
        self.0.copy_within(at + gone.data.., at);
        self.0.truncate(self.0.len() - gone.data);
        self.set_header(RunSize {
            data: size.data - gone.data,
            lens: size.lens - gone.lens,
            count: size.count - gone.count,
        });
    }

    /// Gives back memory that it does not use, if that is a quarter or more.
    pub fn tighten(&mut self) {
        if self.0.capacity() / 4 * 3 > self.0.len() {
            self.0.shrink_to_fit();
        }
    }

    /// An eighth more than needed: twice as much, as vectors grow by themselves, is too much to
    /// hold for long.
    fn reserve(&mut self, more: usize) {
        if self.0.len() + more > self.0.capacity() {
            self.0.reserve_exact(more.max(self.0.len() / 8));
        }
    }

    fn set_header(&mut self, size: RunSize) {
        self.0[..2].copy_from_slice(&(size.count as u16).to_le_bytes());
        self.0[2..4].copy_from_slice(&(size.lens as u16).to_le_bytes());
    }
}

impl Default for PackedList {
    fn default() -> Self {
        Self::new()
    }
}
