//! A small collection in one string of bytes.
//!
//! ```text
//! byte 0    flags: 0x01 a column of deadlines follows · 0x02 two elements a member · 0x04 the owner's mark
//! LEB128    how many members there are
//! members   each of their elements: LEB128 length, bytes
//! column    six bytes for each member, in the order of the members: its deadline, or all ones for none
//! ```
//!
//! An example: the hash `a → 1` is `02 01 01 'a' 01 '1'`. If `a` gets a deadline, byte 0 becomes 3,
//! and six bytes follow behind the `1`.
//!
//! The column comes with the first deadline and goes with the last. So a collection without
//! deadlines pays nothing for them.
//!
//! The bytes are always our own: whoever loads bytes of others inserts their members one by one.

mod edit;
mod expire;
mod find;
mod varint;

pub use edit::{Packed, overwrite};
use tidewheel_store::prefetch;
use varint::varint;

/// Bytes of a cache line.
const CACHE_LINE: usize = 64;

/// A column of deadlines follows.
const TIMED: u8 = 0x01;
/// Each member has two elements.
const PAIRS: u8 = 0x02;
/// The owner's mark.
const MARK: u8 = 0x04;

/// Bytes of a deadline in the column.
const DEADLINE: usize = 6;
/// A member without a deadline.
const NONE: u64 = (1 << 48) - 1;

/// The latest deadline that a member can have, in ticks. A later one counts as this one: nobody
/// waits 8,000 years.
pub const DEADLINE_MAX: u64 = NONE - 1;

/// Where a member is. Valid until the next change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedPosition {
    /// The offset of its first element.
    pub(crate) at: usize,
    /// The number of members that come before it.
    pub(crate) index: usize,
}

impl PackedPosition {
    /// Returns the number of members that come before it.
    #[must_use]
    pub fn index(self) -> usize {
        self.index
    }
}

/// A member, and what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'a> {
    /// Where it is.
    pub place: PackedPosition,
    /// Its first element.
    pub first: &'a [u8],
    /// Its second element; empty where a member has one.
    pub second: &'a [u8],
    /// Its deadline in ticks (ms).
    pub deadline: Option<u64>,
}

/// A packed collection, for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedRef<'a>(&'a [u8]);

impl<'a> PackedRef<'a> {
    /// The collection that these bytes are: those of a [`Packed`]. No bytes are no members.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        let packed = Self(bytes);
        debug_assert!(packed.is_sound(), "broken bytes of a collection");
        packed
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    fn has(self, flag: u8) -> bool {
        self.0.first().is_some_and(|flags| flags & flag != 0)
    }

    /// Returns whether each member has two elements.
    #[must_use]
    pub fn is_pairs(self) -> bool {
        self.has(PAIRS)
    }

    /// Returns whether a member has a deadline.
    #[must_use]
    pub fn is_timed(self) -> bool {
        self.has(TIMED)
    }

    /// Returns whether the owner's mark is set.
    #[must_use]
    pub fn is_marked(self) -> bool {
        self.has(MARK)
    }

    /// Returns the number of members, and the position of the first one.
    #[inline]
    fn header(self) -> (usize, usize) {
        if self.0.len() < 2 {
            return (0, self.0.len());
        }
        varint(self.0, 1)
    }

    /// Returns the number of members. O(1).
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.header().0
    }

    /// Returns whether there are no members.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Where the members end.
    fn end(self) -> usize {
        if self.is_timed() {
            self.0.len() - self.len() * DEADLINE
        } else {
            self.0.len()
        }
    }

    /// The deadlines; empty when no member has one.
    fn column(self) -> &'a [u8] {
        &self.0[self.end()..]
    }

    /// Where the member that begins at `at` ends.
    #[inline]
    fn after(self, at: usize) -> usize {
        let (_, end) = span(self.0, at);
        if self.is_pairs() {
            span(self.0, end).1
        } else {
            end
        }
    }

    /// The elements of the member that begins at `at`, and where it ends.
    #[inline]
    fn elements(self, at: usize) -> (&'a [u8], &'a [u8], usize) {
        let (from, to) = span(self.0, at);
        let first = &self.0[from..to];
        if !self.is_pairs() {
            return (first, &[], to);
        }
        let (from, to) = span(self.0, to);
        (first, &self.0[from..to], to)
    }

    /// The member at a place.
    #[must_use]
    pub fn member(self, place: PackedPosition) -> Member<'a> {
        let (first, second, _) = self.elements(place.at);
        Member {
            place,
            first,
            second,
            deadline: self.deadline(place),
        }
    }

    /// The members, in their order.
    #[must_use]
    pub fn iter(self) -> Members<'a> {
        let (left, at) = self.header();
        Members {
            packed: self,
            column: self.column(),
            next: PackedPosition { at, index: 0 },
            left,
        }
    }

    /// The place behind the last member, for [`Packed::insert`]. O(1).
    #[must_use]
    pub fn back(self) -> PackedPosition {
        PackedPosition {
            at: self.end(),
            index: self.len(),
        }
    }

    /// The place behind this member.
    pub(crate) fn behind(self, place: PackedPosition) -> PackedPosition {
        PackedPosition {
            at: self.after(place.at),
            index: place.index + 1,
        }
    }

    /// The place of the member that `index` members come before.
    #[must_use]
    pub fn nth(self, index: usize) -> Option<PackedPosition> {
        let (len, at) = self.header();
        if index >= len {
            return None;
        }
        let at = match self.is_pairs() {
            true => self.skip(at, 2 * index),
            false => self.skip(at, index),
        };
        Some(PackedPosition { at, index })
    }

    /// Where so many elements, the first of which begins at `at`, end.
    fn skip(self, at: usize, elements: usize) -> usize {
        (0..elements).fold(at, |at, _| span(self.0, at).1)
    }

    /// Asks for the memory, of so many cache lines at most, and does not wait for it.
    pub fn warm(self, lines: usize) {
        let lines = self.0.chunks(CACHE_LINE).take(lines);
        lines.filter_map(<[u8]>::first).for_each(prefetch);
    }

    /// The member's deadline in ticks (ms).
    #[inline]
    #[must_use]
    pub fn deadline(self, place: PackedPosition) -> Option<u64> {
        deadline_in(self.column(), place.index)
    }

    /// The earliest deadline of a member. It looks at all of them.
    #[must_use]
    pub fn earliest(self) -> Option<u64> {
        let earliest = self.deadlines().min().unwrap_or(NONE);
        (earliest != NONE).then_some(earliest)
    }

    /// The column, with `NONE` for members without a deadline.
    fn deadlines(self) -> impl Iterator<Item = u64> + 'a {
        self.column().chunks_exact(DEADLINE).map(raw_deadline)
    }

    /// Panics if the bytes are not those of a collection. O(bytes).
    pub fn validate(self) {
        assert!(self.is_sound(), "broken bytes of a collection");
        assert_eq!(
            self.is_timed(),
            self.earliest().is_some(),
            "a column of nothing"
        );
    }

    /// Returns whether the bytes are those of a collection.
    fn is_sound(self) -> bool {
        if self.0.len() < 2 {
            return self.0.is_empty() || self.0.len() == 1;
        }
        let (len, mut at) = self.header();
        for _ in 0..len {
            at = self.after(at);
        }
        at == self.end()
    }
}

/// The members of a packed collection.
#[derive(Debug, Clone)]
pub struct Members<'a> {
    packed: PackedRef<'a>,
    column: &'a [u8],
    next: PackedPosition,
    left: usize,
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    #[inline]
    fn next(&mut self) -> Option<Member<'a>> {
        self.left = self.left.checked_sub(1)?;
        let place = self.next;
        let (first, second, end) = self.packed.elements(place.at);
        self.next = PackedPosition {
            at: end,
            index: place.index + 1,
        };
        Some(Member {
            place,
            first,
            second,
            deadline: deadline_in(self.column, place.index),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Members<'_> {}

/// Where an element's bytes begin and end.
#[inline(always)]
fn span(bytes: &[u8], at: usize) -> (usize, usize) {
    let (len, from) = varint(bytes, at);
    (from, from + len)
}

fn raw_deadline(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..DEADLINE].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

fn deadline_in(column: &[u8], index: usize) -> Option<u64> {
    let at = index * DEADLINE;
    let deadline = raw_deadline(column.get(at..at + DEADLINE)?);
    (deadline != NONE).then_some(deadline)
}
