//! Reading a sorted set.

use std::collections::HashSet;
use std::ops::{Bound, Range};

use super::large::LargeZSet;
use super::{Scored, ZSet, packed};
use crate::packed::{Packed, PackedRef};
use crate::random::{Selection, below};
use crate::view::At;

/// Draws for each member that is wanted, and some more: 1.2 would do on average.
const DRAWS: usize = 8;
const DRAWS_MIN: usize = 64;

/// A sorted set, for reading. It does not know the time: the caller has removed what is due.
///
/// Ranks count from 0, the least score first. The rank from the other end is `len() - 1 - rank`.
/// Costs are those of a large set; a packed one takes a pass over its bytes.
#[derive(Debug, Clone, Copy)]
pub enum ZSetRef<'a> {
    /// One string of bytes.
    Packed(PackedRef<'a>),
    /// A store and an order.
    Large(&'a LargeZSet),
}

impl<'a> ZSetRef<'a> {
    /// Returns the number of members. O(1).
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Self::Packed(packed) => packed.len(),
            Self::Large(large) => large.len(),
        }
    }

    /// Returns whether there are no members.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns whether a member has a deadline.
    #[must_use]
    pub fn is_timed(self) -> bool {
        match self {
            Self::Packed(packed) => packed.is_timed(),
            Self::Large(large) => large.timed() > 0,
        }
    }

    /// Returns whether the deadlines of all members are at or before `now`. Of a large set, `false`
    /// may also mean that it is not known without a look at each. O(1) for a large set.
    #[must_use]
    pub fn is_over(self, now: u64) -> bool {
        match self {
            Self::Packed(packed) => packed.is_over(now),
            Self::Large(large) => large.is_over(now),
        }
    }

    /// A lower bound of the members' earliest deadline, never later than it; `None` when no member
    /// has one. A packed set looks at all of its deadlines.
    #[must_use]
    pub fn next_deadline(self) -> Option<u64> {
        match self {
            Self::Packed(packed) => packed.earliest(),
            Self::Large(large) => large.next_deadline(),
        }
    }

    /// A member's score. O(1).
    #[must_use]
    pub fn score(self, member: &[u8]) -> Option<f64> {
        self.find(member).map(|found| found.score)
    }

    /// A member with its score and deadline. O(1).
    #[must_use]
    pub fn find(self, member: &[u8]) -> Option<Scored<'a>> {
        self.at(self.place(member)?)
    }

    #[inline]
    pub(super) fn place(self, member: &[u8]) -> Option<At> {
        match self {
            Self::Packed(packed) => packed.find(member).map(At::Packed),
            Self::Large(large) => large.find(member).map(At::Large),
        }
    }

    pub(super) fn at(self, at: At) -> Option<Scored<'a>> {
        match (self, at) {
            (Self::Packed(packed), At::Packed(place)) => Some(packed.member(place).into()),
            (Self::Large(large), At::Large(slot)) => Some(large.scored(slot)),
            _ => None,
        }
    }

    /// Returns the number of members that come before one, and its score. O(log n).
    #[must_use]
    pub fn rank(self, member: &[u8]) -> Option<(usize, f64)> {
        match self {
            Self::Packed(packed) => {
                let place = packed.find(member)?;
                let found: Scored<'_> = packed.member(place).into();
                Some((place.index(), found.score))
            }
            Self::Large(large) => {
                let slot = large.find(member)?;
                Some((large.rank(slot), large.score(slot)))
            }
        }
    }

    /// The member at a rank. O(log n), O(1) for the first and the last.
    #[must_use]
    pub fn nth(self, rank: usize) -> Option<Scored<'a>> {
        match self {
            Self::Packed(packed) => Some(packed.member(packed.nth(rank)?).into()),
            Self::Large(large) => large.nth(rank),
        }
    }

    /// The ranks of the scores between two bounds. O(log n).
    #[must_use]
    pub fn by_score(self, min: Bound<f64>, max: Bound<f64>) -> Range<usize> {
        match self {
            Self::Packed(packed) => packed::by_score(packed, min, max),
            Self::Large(large) => large.by_score(min, max),
        }
    }

    /// The ranks of the members between two bounds, byte by byte. It means something if all scores
    /// are equal; otherwise the range is some range. O(log n).
    #[must_use]
    pub fn by_lex(self, min: Bound<&[u8]>, max: Bound<&[u8]>) -> Range<usize> {
        match self {
            Self::Packed(packed) => packed::by_lex(packed, min, max),
            Self::Large(large) => large.by_lex(min, max),
        }
    }

    /// The members from a rank up. O(log n), and O(1) for each.
    pub fn forward(self, rank: usize) -> impl Iterator<Item = Scored<'a>> {
        let (packed, large) = match self {
            Self::Packed(packed) => (Some(packed.iter().skip(rank)), None),
            Self::Large(large) => (None, Some(large.forward(rank))),
        };
        let packed = packed.into_iter().flatten().map(Scored::from);
        packed.chain(large.into_iter().flatten())
    }

    /// The members from a rank down to the first. O(log n), and O(1) for each.
    pub fn backward(self, rank: usize) -> impl Iterator<Item = Scored<'a>> {
        let (packed, large) = match self {
            _ if rank >= self.len() => (None, None),
            Self::Packed(packed) => {
                let pairs: Vec<_> = packed.iter().take(rank + 1).collect();
                (Some(pairs.into_iter().rev()), None)
            }
            Self::Large(large) => (None, Some(large.backward(rank))),
        };
        let packed = packed.into_iter().flatten().map(Scored::from);
        packed.chain(large.into_iter().flatten())
    }

    /// Visits at least `count` members from `cursor` on, and returns the cursor to go on with; 0 at
    /// the end. A walk that begins with 0 visits each member that stays exactly once. A packed set
    /// is visited as a whole.
    pub fn scan(self, cursor: u64, count: usize, visit: impl FnMut(Scored<'a>)) -> u64 {
        match self {
            Self::Packed(_) => {
                self.forward(0).for_each(visit);
                0
            }
            Self::Large(large) => large.scan(cursor, count, visit),
        }
    }

    /// A random member, by 64 random bits; `None` when there are none. All are equally likely.
    /// O(log n).
    #[must_use]
    pub fn random(self, bits: u64) -> Option<Scored<'a>> {
        self.nth(below(bits, self.len()))
    }

    /// Visits `count` different random members, or all if there are fewer. `bits` gives 64 random
    /// bits at each call. O(count · log n) for a large set, O(n) for a packed one.
    pub fn random_distinct(
        self,
        count: usize,
        mut bits: impl FnMut() -> u64,
        mut visit: impl FnMut(Scored<'a>),
    ) {
        let len = self.len();
        if matches!(self, Self::Large(_)) && count < len / 3 {
            return self.draw(count, bits, visit);
        }
        let mut selection = Selection {
            left: len,
            wanted: count.min(len),
        };
        for entry in self.forward(0) {
            if selection.takes(&mut bits) {
                visit(entry);
            }
        }
    }

    /// Draws ranks until `count` different ones have been met. Should random bits be so bad that
    /// draws do not get there, the first others are visited.
    fn draw(self, count: usize, mut bits: impl FnMut() -> u64, mut visit: impl FnMut(Scored<'a>)) {
        let mut met = HashSet::with_capacity(count);
        let drawn = (0..DRAWS_MIN + DRAWS * count).map(|_| below(bits(), self.len()));
        for rank in drawn.chain(0..) {
            if met.len() == count {
                return;
            }
            if met.insert(rank) {
                self.nth(rank).into_iter().for_each(&mut visit);
            }
        }
    }

    /// A set of its own with the same members and deadlines, in the same form. O(n).
    #[must_use]
    pub fn copy(self, now: u64) -> ZSet {
        match self {
            Self::Packed(packed) => ZSet::Packed(Packed::from_bytes(packed.bytes().to_vec())),
            Self::Large(large) => ZSet::Large(Box::new(large.copy(now))),
        }
    }

    /// Panics if the structure is broken. O(n).
    pub fn validate(self) {
        match self {
            Self::Packed(packed) => packed.validate(),
            Self::Large(large) => large.validate(),
        }
        let mut last: Option<Scored<'_>> = None;
        for entry in self.forward(0) {
            assert!(!entry.score.is_nan(), "a score that is no number");
            let follows = last.is_none_or(|last| {
                last.score < entry.score
                    || (last.score == entry.score && last.member < entry.member)
            });
            assert!(follows, "the order");
            last = Some(entry);
        }
    }
}
