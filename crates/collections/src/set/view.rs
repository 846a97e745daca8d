//! Reading a set.

use super::{Set, SetForm};
use crate::packed::{Packed, PackedRef};
use crate::table::{Entry, Table};
use crate::view::View;

/// A set, for reading. It does not know the time: the caller has removed what is due.
#[derive(Debug, Clone, Copy)]
pub enum SetRef<'a> {
    /// One string of bytes.
    Packed(PackedRef<'a>),
    /// A table.
    Large(&'a Table),
}

impl<'a> SetRef<'a> {
    #[inline]
    pub(super) fn view(self) -> View<'a> {
        match self {
            Self::Packed(packed) => View::Packed(packed),
            Self::Large(table) => View::Large(table),
        }
    }

    /// Its form, as OBJECT ENCODING tells it.
    #[must_use]
    pub fn form(self) -> SetForm {
        match self {
            Self::Packed(packed) if packed.is_marked() => SetForm::Integers,
            Self::Packed(_) => SetForm::Packed,
            Self::Large(_) => SetForm::Large,
        }
    }

    /// Returns the number of members. O(1).
    #[must_use]
    pub fn len(self) -> usize {
        self.view().len()
    }

    /// Returns whether there are no members.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns whether a member is there.
    #[inline]
    #[must_use]
    pub fn contains(self, member: &[u8]) -> bool {
        self.view().contains(member)
    }

    /// A member with its deadline.
    #[inline]
    #[must_use]
    pub fn find(self, member: &[u8]) -> Option<Entry<'a>> {
        self.view().find(member)
    }

    /// Returns whether a member has a deadline.
    #[must_use]
    pub fn is_timed(self) -> bool {
        self.view().is_timed()
    }

    /// Returns whether the deadlines of all members are at or before `now`. Of a large set, `false`
    /// may also mean that it is not known without a look at each. O(1) for a large set.
    #[must_use]
    pub fn is_over(self, now: u64) -> bool {
        self.view().is_over(now)
    }

    /// A lower bound of the members' earliest deadline, never later than it; `None` when no member
    /// has one. A packed set looks at all of its deadlines.
    #[must_use]
    pub fn next_deadline(self) -> Option<u64> {
        self.view().next_deadline()
    }

    /// Visits all members.
    pub fn for_each(self, visit: impl FnMut(Entry<'a>)) {
        self.view().for_each(visit);
    }

    /// As [`for_each`](Self::for_each), for members that go into another set: in an order in which
    /// that grows well.
    pub fn for_each_to_copy(self, mut visit: impl FnMut(Entry<'a>)) {
        match self {
            Self::Packed(packed) => packed.iter().for_each(|member| visit(member.into())),
            Self::Large(table) => table.for_each_by_place(visit),
        }
    }

    /// Visits at least `count` members from `cursor` on, and returns the cursor to go on with; 0 at
    /// the end. A walk that begins with 0 visits each member that stays exactly once. A packed set
    /// is visited as a whole.
    pub fn scan(self, cursor: u64, count: usize, visit: impl FnMut(Entry<'a>)) -> u64 {
        self.view().scan(cursor, count, visit)
    }

    /// A random member, by 64 random bits; `None` when there are none. As fair as
    /// [`HashRef::random`].
    ///
    /// [`HashRef::random`]: crate::HashRef::random
    #[must_use]
    pub fn random(self, bits: u64) -> Option<Entry<'a>> {
        self.view().random(bits)
    }

    /// Visits `count` different random members, or all if there are fewer. `bits` gives 64 random
    /// bits at each call. Takes time in proportion to the members visited in a large set, and to
    /// all members in a packed one.
    pub fn random_distinct(
        self,
        count: usize,
        bits: impl FnMut() -> u64,
        visit: impl FnMut(Entry<'a>),
    ) {
        self.view().random_distinct(count, bits, visit);
    }

    /// A set of its own with the same members and deadlines, in the same form. O(members).
    #[must_use]
    pub fn copy(self, now: u64) -> Set {
        match self {
            Self::Packed(packed) => Set::Packed(Packed::from_bytes(packed.bytes().to_vec())),
            Self::Large(table) => Set::Large(Box::new(table.copy(now))),
        }
    }

    /// Panics if the structure is broken. O(members).
    pub fn validate(self) {
        match self {
            Self::Packed(packed) => packed.validate(),
            Self::Large(table) => table.validate(),
        }
    }
}
