//! A set: members, and a deadline for each member that wants one.

mod integer;
mod view;

use tidewheel_store::Progress;

use crate::change::{Change, NewDeadline};
use crate::packed::Packed;
use crate::table::{Entry, Table};
use crate::view::At;
use crate::walk::Walked;
use integer::is_integer;
pub use view::SetRef;

/// A set, for changes.
///
/// The mark of a packed set says that its members are integers, and always were. Such a set may
/// have more members.
#[derive(Debug)]
pub enum Set {
    /// Few and short members: one string of bytes.
    Packed(Packed),
    /// Any others.
    Large(Box<Table>),
}

/// A large set moves the members that stay if that many times more go.
const FEW: usize = 5;

/// The form of a set, which clients may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetForm {
    /// Packed, and all members were always integers.
    Integers,
    /// Packed.
    Packed,
    /// A table.
    Large,
}

impl Default for Set {
    fn default() -> Self {
        Self::new()
    }
}

impl Set {
    /// A set without members. Allocates two bytes.
    #[must_use]
    pub fn new() -> Self {
        Self::reuse(Vec::new())
    }

    /// As [`new`](Self::new), in memory at hand.
    #[must_use]
    pub fn reuse(bytes: Vec<u8>) -> Self {
        let mut packed = Packed::reuse_for_singles(bytes);
        packed.set_mark(true);
        Self::Packed(packed)
    }

    /// For reading.
    #[inline]
    #[must_use]
    pub fn get(&self) -> SetRef<'_> {
        match self {
            Self::Packed(packed) => SetRef::Packed(packed.get()),
            Self::Large(table) => SetRef::Large(table),
        }
    }

    /// Heap bytes held. O(1).
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Packed(packed) => packed.heap_bytes(),
            Self::Large(table) => table.bytes(),
        }
    }

    /// Adds a member; returns whether it is new. One that is there gets the deadline. A set that
    /// outgrows the limits becomes large, once and for all.
    ///
    /// O(1) for a large set. O(bytes) for a packed one.
    pub fn insert(&mut self, member: &[u8], deadline: NewDeadline, change: &Change<'_>) -> bool {
        if let Self::Packed(packed) = self
            && let Some(new) = insert_packed(packed, member, deadline, change)
        {
            return new;
        }
        self.grow(change).insert(member, b"", deadline, change.now)
    }

    /// Removes a member; returns whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match self {
            Self::Packed(packed) => {
                let place = packed.get().find(member);
                place.inspect(|place| packed.remove(*place));
                place.is_some()
            }
            Self::Large(table) => {
                let slot = table.find(member);
                slot.inspect(|slot| table.remove(*slot));
                slot.is_some()
            }
        }
    }

    /// Removes a random member, chosen as by [`SetRef::random`], and shows it to `look` before;
    /// `None` when there are no members.
    pub fn pop<T>(&mut self, bits: u64, look: impl FnOnce(Entry<'_>) -> T) -> Option<T> {
        let at = self.get().view().random_at(bits)?;
        match (self, at) {
            (Self::Packed(packed), At::Packed(place)) => {
                let seen = look(packed.get().member(place).into());
                packed.remove(place);
                Some(seen)
            }
            (Self::Large(table), At::Large(slot)) => {
                let seen = look(table.entry(slot));
                table.remove(slot);
                Some(seen)
            }
            _ => None,
        }
    }

    /// Removes `count` random members, or all if there are fewer, and shows each to `look` before.
    /// `bits` gives 64 random bits at each call. O(1) for each; O(members) if nearly all go.
    pub fn pop_many(
        &mut self,
        count: usize,
        now: u64,
        mut bits: impl FnMut() -> u64,
        mut look: impl FnMut(Entry<'_>),
    ) {
        let len = self.get().len();
        let count = count.min(len);
        match self {
            Self::Large(table) if (len - count).saturating_mul(FEW) <= count => {
                table.keep_few(count, now, bits, look);
            }
            _ => (0..count).for_each(|_| {
                self.pop(bits(), &mut look);
            }),
        }
    }

    /// Gives a member a deadline, moves it, or takes it away. Returns whether the member is there.
    /// A deadline that has passed is due at once: the caller removes the member instead.
    pub fn set_deadline(&mut self, member: &[u8], deadline: Option<u64>, now: u64) -> bool {
        match self {
            Self::Packed(packed) => {
                let place = packed.get().find(member);
                place.inspect(|place| packed.set_deadline(*place, deadline));
                place.is_some()
            }
            Self::Large(table) => {
                let slot = table.find(member);
                slot.inspect(|slot| table.set_deadline(*slot, deadline, now));
                slot.is_some()
            }
        }
    }

    /// Removes the members whose deadline is at or before `now`, and shows each to `sink`, in the
    /// order of their deadlines; members that were overdue when the set became large, or was
    /// copied, come first, in any order.
    ///
    /// Removes at most `budget` members of a packed set; touches at most `budget` timer records of
    /// a large one.
    pub fn expire(&mut self, now: u64, budget: u32, mut sink: impl FnMut(Entry<'_>)) -> Progress {
        match self {
            Self::Packed(packed) => packed.expire(now, budget, |member| sink(member.into())),
            Self::Large(table) => table.expire(now, budget, sink),
        }
    }

    /// Gives memory back, in about `budget` steps. Returns whether more is worth doing.
    pub fn maintain(&mut self, budget: u32) -> bool {
        match self {
            Self::Packed(_) => false,
            Self::Large(table) => table.maintain(budget),
        }
    }

    /// The large form, for a walk over its members.
    pub fn walked(&mut self) -> Option<&mut dyn Walked> {
        match self {
            Self::Packed(_) => None,
            Self::Large(table) => Some(&mut **table),
        }
    }

    /// The large form, which it has from now on.
    fn grow(&mut self, change: &Change<'_>) -> &mut Table {
        if let Self::Packed(packed) = self {
            let table = Table::unpack(packed.get(), change.hasher, change.now);
            *self = Self::Large(Box::new(table));
        }
        match self {
            Self::Large(table) => table,
            Self::Packed(_) => unreachable!("it has just grown"),
        }
    }
}

/// Adds a member to a packed set; `None` if it does not fit any more.
fn insert_packed(
    packed: &mut Packed,
    member: &[u8],
    deadline: NewDeadline,
    change: &Change<'_>,
) -> Option<bool> {
    let found = packed.get().find(member);
    let place = match found {
        Some(place) => place,
        None => {
            let integers = stays_packed(packed, member, change)?;
            packed.set_mark(integers);
            packed.push(member, b"")
        }
    };
    let old = packed.get().deadline(place);
    let deadline = deadline.over(old);
    if deadline != old {
        packed.set_deadline(place, deadline);
    }
    Some(found.is_none())
}

/// Returns whether the set stays packed with a new member, and if so, whether it then contains
/// integers only.
fn stays_packed(packed: &Packed, member: &[u8], change: &Change<'_>) -> Option<bool> {
    let (packed, limits) = (packed.get(), change.limits);
    if packed.is_marked() && is_integer(member) {
        return limits.hold_integers(packed.len() + 1).then_some(true);
    }
    let bytes = packed.bytes().len() + member.len();
    let fits = member.len() <= limits.value && limits.hold(packed.len() + 1, bytes);
    // The integers have never been held against the limit of bytes.
    let others_fit = !packed.is_marked() || packed.iter().all(|m| m.first.len() <= limits.value);
    (fits && others_fit).then_some(false)
}
