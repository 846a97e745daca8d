//! A hash: fields with values, and a deadline for each field that wants one.

mod view;

use tidewheel_store::Progress;

use crate::change::{Change, NewDeadline};
use crate::packed::Packed;
use crate::table::{Entry, Table};
use crate::walk::Walked;
pub use view::HashRef;

/// A hash, for changes.
#[derive(Debug)]
pub enum Hash {
    /// Few and short fields: one string of bytes.
    Packed(Packed),
    /// Any others.
    Large(Box<Table>),
}

impl Default for Hash {
    fn default() -> Self {
        Self::new()
    }
}

impl Hash {
    /// A hash without fields. Allocates two bytes.
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
    pub fn get(&self) -> HashRef<'_> {
        match self {
            Self::Packed(packed) => HashRef::Packed(packed.get()),
            Self::Large(table) => HashRef::Large(table),
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

    /// Writes a field; returns whether it is new. A hash that outgrows the limits becomes large,
    /// once and for all.
    ///
    /// O(1) for a large hash. O(bytes) for a packed one.
    pub fn insert(
        &mut self,
        field: &[u8],
        value: &[u8],
        deadline: NewDeadline,
        change: &Change<'_>,
    ) -> bool {
        if let Self::Packed(packed) = self
            && let Some(new) = insert_packed(packed, field, value, deadline, change)
        {
            return new;
        }
        self.grow(change).insert(field, value, deadline, change.now)
    }

    /// Removes a field; returns whether it was there.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        self.take(field, |_| ()).is_some()
    }

    /// Removes a field, and shows it to `look` before; `None` if it is not there.
    pub fn take<T>(&mut self, field: &[u8], look: impl FnOnce(Entry<'_>) -> T) -> Option<T> {
        match self {
            Self::Packed(packed) => {
                let place = packed.get().find(field)?;
                let seen = look(packed.get().member(place).into());
                packed.remove(place);
                Some(seen)
            }
            Self::Large(table) => {
                let slot = table.find(field)?;
                let seen = look(table.entry(slot));
                table.remove(slot);
                Some(seen)
            }
        }
    }

    /// Gives a field a deadline, moves it, or takes it away. Returns whether the field is there. A
    /// deadline that has passed is due at once: the caller removes the field instead.
    pub fn set_deadline(&mut self, field: &[u8], deadline: Option<u64>, now: u64) -> bool {
        match self {
            Self::Packed(packed) => {
                let place = packed.get().find(field);
                place.inspect(|place| packed.set_deadline(*place, deadline));
                place.is_some()
            }
            Self::Large(table) => {
                let slot = table.find(field);
                slot.inspect(|slot| table.set_deadline(*slot, deadline, now));
                slot.is_some()
            }
        }
    }

    /// Removes the fields whose deadline is at or before `now`, and shows each to `sink`, in the
    /// order of their deadlines; fields that were overdue when the hash became large, or was
    /// copied, come first, in any order.
    ///
    /// Removes at most `budget` fields of a packed hash; touches at most `budget` timer records of
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

/// Writes a field of a packed hash; `None` if it does not fit any more.
fn insert_packed(
    packed: &mut Packed,
    field: &[u8],
    value: &[u8],
    deadline: NewDeadline,
    change: &Change<'_>,
) -> Option<bool> {
    let limits = change.limits;
    if field.len().max(value.len()) > limits.value {
        return None;
    }
    let found = packed.get().find(field);
    let entries = packed.get().len() + usize::from(found.is_none());
    let bytes = packed.get().bytes().len() + field.len() + value.len();
    if !limits.hold(entries, bytes) {
        return None;
    }
    let place = match found {
        Some(place) => {
            packed.set_second(place, value);
            place
        }
        None => packed.push(field, value),
    };
    let old = packed.get().deadline(place);
    let deadline = deadline.over(old);
    if deadline != old {
        packed.set_deadline(place, deadline);
    }
    Some(found.is_none())
}
