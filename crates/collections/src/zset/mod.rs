//! A sorted set: members with scores, in order, and a deadline for each member that wants one.
//!
//! Members are ordered by score, and those of one score byte by byte. −0 and 0 are one score, and
//! no score is NaN.

mod large;
mod packed;
mod score;
mod view;

use std::ops::{Bound, Range};

use tidewheel_store::Progress;

use crate::change::{Change, NewDeadline};
use crate::packed::Packed;
use crate::view::At;
use crate::walk::Walked;
pub use large::LargeZSet;
pub use view::ZSetRef;

/// A member of a sorted set, and what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored<'a> {
    /// The member.
    pub member: &'a [u8],
    /// Its score; never NaN.
    pub score: f64,
    /// Its deadline in ticks (ms).
    pub deadline: Option<u64>,
}

/// The result of [`ZSet::update`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Updated {
    /// The member's score before; `None` if it was not there.
    pub old: Option<f64>,
    /// The score that was written; `None` if none was.
    pub new: Option<f64>,
}

/// A sorted set, for changes.
#[derive(Debug)]
pub enum ZSet {
    /// Few and short members: one string of bytes.
    Packed(Packed),
    /// Any others.
    Large(Box<LargeZSet>),
}

impl Default for ZSet {
    fn default() -> Self {
        Self::new()
    }
}

impl ZSet {
    /// A set without members. Allocates two bytes.
    #[must_use]
    pub fn new() -> Self {
        Self::Packed(Packed::of_pairs())
    }

    /// As [`new`](Self::new), in memory at hand.
    #[must_use]
    pub fn reuse(bytes: Vec<u8>) -> Self {
        Self::Packed(Packed::reuse_for_pairs(bytes))
    }

    /// For reading.
    #[inline]
    #[must_use]
    pub fn get(&self) -> ZSetRef<'_> {
        match self {
            Self::Packed(packed) => ZSetRef::Packed(packed.get()),
            Self::Large(large) => ZSetRef::Large(large),
        }
    }

    /// Heap bytes held. O(1).
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Packed(packed) => packed.heap_bytes(),
            Self::Large(large) => large.bytes(),
        }
    }

    /// Writes a member with its score; returns its old score. A score that is NaN is not written. A
    /// set that outgrows the limits becomes large, once and for all.
    ///
    /// O(log n) for a large set, O(bytes) for a packed one.
    pub fn insert(
        &mut self,
        member: &[u8],
        score: f64,
        deadline: NewDeadline,
        change: &Change<'_>,
    ) -> Option<f64> {
        self.update(member, deadline, change, |_| Some(score)).old
    }

    /// Writes a member with the score that `decide` chooses. It is told the present score, `None`
    /// if the member is not there. If it chooses none, or NaN, nothing changes. Otherwise as
    /// [`insert`](Self::insert).
    pub fn update(
        &mut self,
        member: &[u8],
        deadline: NewDeadline,
        change: &Change<'_>,
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> Updated {
        let found = self.get().place(member);
        let present = found.and_then(|at| self.get().at(at));
        let old = present.map(|present| present.score);
        let new = decide(old).filter(|score| !score.is_nan());
        if let Some(score) = new {
            let deadline = deadline.over(present.and_then(|present| present.deadline));
            self.write(found, member, score, deadline, change);
        }
        Updated { old, new }
    }

    fn write(
        &mut self,
        found: Option<At>,
        member: &[u8],
        score: f64,
        deadline: Option<u64>,
        change: &Change<'_>,
    ) {
        let limits = change.limits;
        match (&mut *self, found) {
            (Self::Packed(packed), Some(At::Packed(place))) => {
                return packed::update(packed, place, score, deadline);
            }
            (Self::Packed(packed), None)
                if member.len() <= limits.value
                    && limits.hold(
                        packed.get().len() + 1,
                        packed.get().bytes().len() + member.len(),
                    ) =>
            {
                return packed::add(packed, member, score, deadline);
            }
            (Self::Large(large), Some(At::Large(slot))) => {
                return large.update(slot, member, score, deadline, change.now);
            }
            _ => {}
        }
        self.grow(change).add(member, score, deadline, change.now);
    }

    /// Removes a member; returns its score.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Packed(packed) => {
                let place = packed.get().find(member)?;
                let score = Scored::from(packed.get().member(place)).score;
                packed.remove(place);
                Some(score)
            }
            Self::Large(large) => {
                let slot = large.find(member)?;
                let score = large.score(slot);
                large.remove(slot);
                Some(score)
            }
        }
    }

    /// Removes members by rank, and shows each to `sink` before, the least first. Ranks that do not
    /// exist are passed over. O(log n), and O(1) for each.
    ///
    /// To pop the greatest, read them with [`ZSetRef::backward`], and then remove the last ranks.
    pub fn remove_range(&mut self, ranks: Range<usize>, sink: impl FnMut(Scored<'_>)) {
        let ranks = ranks.start..ranks.end.min(self.get().len());
        match self {
            Self::Packed(packed) => packed::remove_range(packed, ranks, sink),
            Self::Large(large) => large.remove_range(ranks, sink),
        }
    }

    /// Gives a member a deadline, moves it, or takes it away. Returns whether the member is there.
    /// A deadline that has passed is due at once: the caller removes the member instead.
    ///
    /// O(1) for a large set, O(log n) if the member gets a deadline for the first time.
    pub fn set_deadline(&mut self, member: &[u8], deadline: Option<u64>, now: u64) -> bool {
        match self {
            Self::Packed(packed) => {
                let place = packed.get().find(member);
                place.inspect(|place| packed.set_deadline(*place, deadline));
                place.is_some()
            }
            Self::Large(large) => {
                let slot = large.find(member);
                slot.inspect(|slot| large.set_deadline(*slot, deadline, now));
                slot.is_some()
            }
        }
    }

    /// Removes the members whose deadline is at or before `now`, and shows each to `sink`, in the
    /// order of their deadlines. Removes at most `budget` members of a packed set; touches at most
    /// `budget` timer records of a large one.
    pub fn expire(&mut self, now: u64, budget: u32, mut sink: impl FnMut(Scored<'_>)) -> Progress {
        match self {
            Self::Packed(packed) => packed.expire(now, budget, |pair| sink(pair.into())),
            Self::Large(large) => large.expire(now, budget, sink),
        }
    }

    /// Gives memory back, in about `budget` steps. Returns whether more is worth doing.
    pub fn maintain(&mut self, budget: u32) -> bool {
        match self {
            Self::Packed(_) => false,
            Self::Large(large) => large.maintain(budget),
        }
    }

    /// The large form, for a walk over its members.
    pub fn walked(&mut self) -> Option<&mut dyn Walked> {
        match self {
            Self::Packed(_) => None,
            Self::Large(large) => Some(&mut **large),
        }
    }

    /// The large form, which it has from now on.
    fn grow(&mut self, change: &Change<'_>) -> &mut LargeZSet {
        if let Self::Packed(packed) = self {
            let mut large = LargeZSet::new(change.hasher);
            for pair in packed.get().iter().map(Scored::from) {
                large.add(pair.member, pair.score, pair.deadline, change.now);
            }
            *self = Self::Large(Box::new(large));
        }
        match self {
            Self::Large(large) => large,
            Self::Packed(_) => unreachable!("it has just grown"),
        }
    }
}

/// Returns whether a value lies before a range that begins with `min`.
fn below_start<T: PartialOrd>(value: T, min: Bound<T>) -> bool {
    match min {
        Bound::Included(min) => value < min,
        Bound::Excluded(min) => value <= min,
        Bound::Unbounded => false,
    }
}

/// Returns whether a value lies before the end of a range that ends with `max`.
fn within_end<T: PartialOrd>(value: T, max: Bound<T>) -> bool {
    match max {
        Bound::Included(max) => value <= max,
        Bound::Excluded(max) => value < max,
        Bound::Unbounded => true,
    }
}
