//! Reading a hash.

use super::Hash;
use crate::packed::{Packed, PackedRef};
use crate::table::{Entry, Table};
use crate::view::View;

/// A hash, for reading. It does not know the time: the caller has removed what is due.
#[derive(Debug, Clone, Copy)]
pub enum HashRef<'a> {
    /// One string of bytes.
    Packed(PackedRef<'a>),
    /// A table.
    Large(&'a Table),
}

impl<'a> HashRef<'a> {
    #[inline]
    fn view(self) -> View<'a> {
        match self {
            Self::Packed(packed) => View::Packed(packed),
            Self::Large(table) => View::Large(table),
        }
    }

    /// Returns the number of fields. O(1).
    #[must_use]
    pub fn len(self) -> usize {
        self.view().len()
    }

    /// Returns whether there are no fields.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The value of a field.
    #[inline]
    #[must_use]
    pub fn value(self, field: &[u8]) -> Option<&'a [u8]> {
        self.find(field).map(|entry| entry.value)
    }

    /// A field with its value and deadline.
    #[inline]
    #[must_use]
    pub fn find(self, field: &[u8]) -> Option<Entry<'a>> {
        self.view().find(field)
    }

    /// Returns whether a field is there.
    #[must_use]
    pub fn contains(self, field: &[u8]) -> bool {
        self.view().contains(field)
    }

    /// Returns whether a field has a deadline.
    #[must_use]
    pub fn is_timed(self) -> bool {
        self.view().is_timed()
    }

    /// Returns whether the deadlines of all fields are at or before `now`. Of a large hash, `false`
    /// may also mean that it is not known without a look at each. O(1) for a large hash.
    #[must_use]
    pub fn is_over(self, now: u64) -> bool {
        self.view().is_over(now)
    }

    /// A lower bound of the fields' earliest deadline, never later than it; `None` when no field
    /// has one. A packed hash looks at all of its deadlines.
    #[must_use]
    pub fn next_deadline(self) -> Option<u64> {
        self.view().next_deadline()
    }

    /// Visits all fields.
    pub fn for_each(self, visit: impl FnMut(Entry<'a>)) {
        self.view().for_each(visit);
    }

    /// Visits at least `count` fields from `cursor` on, and returns the cursor to go on with; 0 at
    /// the end. A walk that begins with 0 visits each field that stays exactly once. A packed hash
    /// is visited as a whole.
    pub fn scan(self, cursor: u64, count: usize, visit: impl FnMut(Entry<'a>)) -> u64 {
        self.view().scan(cursor, count, visit)
    }

    /// A random field, by 64 random bits; `None` when there are none.
    ///
    /// All fields of a packed hash are equally likely. In a large hash a field's share differs from
    /// that by a few per cent: parts of the index are chosen by their share of the hash values, not
    /// by the fields that they have.
    #[must_use]
    pub fn random(self, bits: u64) -> Option<Entry<'a>> {
        self.view().random(bits)
    }

    /// Visits `count` different random fields, or all if there are fewer. `bits` gives 64 random
    /// bits at each call. Takes time in proportion to the fields visited in a large hash, and to
    /// all fields in a packed one.
    pub fn random_distinct(
        self,
        count: usize,
        bits: impl FnMut() -> u64,
        visit: impl FnMut(Entry<'a>),
    ) {
        self.view().random_distinct(count, bits, visit);
    }

    /// A hash of its own with the same fields and deadlines, in the same form. O(fields).
    #[must_use]
    pub fn copy(self, now: u64) -> Hash {
        match self {
            Self::Packed(packed) => Hash::Packed(Packed::from_bytes(packed.bytes().to_vec())),
            Self::Large(table) => Hash::Large(Box::new(table.copy(now))),
        }
    }

    /// Panics if the structure is broken. O(fields).
    pub fn validate(self) {
        match self {
            Self::Packed(packed) => packed.validate(),
            Self::Large(table) => table.validate(),
        }
    }
}
