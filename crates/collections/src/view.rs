//! The common part of reading hashes and sets, in both forms.

use std::collections::HashSet;

use tidewheel_store::Slot;

use crate::packed::{Member, PackedPosition, PackedRef};
use crate::random::{Selection, below};
use crate::table::{Entry, Table};

/// Draws for each member that is wanted, and some more: 1.2 would do on average.
const DRAWS: usize = 8;
const DRAWS_MIN: usize = 64;

#[derive(Clone, Copy)]
pub(crate) enum View<'a> {
    Packed(PackedRef<'a>),
    Large(&'a Table),
}

/// Where a member is, in either form.
#[derive(Clone, Copy)]
pub(crate) enum At {
    Packed(PackedPosition),
    Large(Slot),
}

impl<'a> From<Member<'a>> for Entry<'a> {
    fn from(member: Member<'a>) -> Self {
        Self {
            key: member.first,
            value: member.second,
            deadline: member.deadline,
        }
    }
}

impl<'a> View<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Packed(packed) => packed.len(),
            Self::Large(table) => table.len(),
        }
    }

    pub(crate) fn is_timed(self) -> bool {
        match self {
            Self::Packed(packed) => packed.is_timed(),
            Self::Large(table) => table.timed() > 0,
        }
    }

    pub(crate) fn next_deadline(self) -> Option<u64> {
        match self {
            Self::Packed(packed) => packed.earliest(),
            Self::Large(table) => table.next_deadline(),
        }
    }

    pub(crate) fn is_over(self, now: u64) -> bool {
        match self {
            Self::Packed(packed) => packed.is_over(now),
            Self::Large(table) => table.is_over(now),
        }
    }

    pub(crate) fn contains(self, key: &[u8]) -> bool {
        match self {
            Self::Packed(packed) => packed.find(key).is_some(),
            Self::Large(table) => table.find(key).is_some(),
        }
    }

    #[inline]
    pub(crate) fn find(self, key: &[u8]) -> Option<Entry<'a>> {
        match self {
            Self::Packed(packed) => Some(packed.member(packed.find(key)?).into()),
            Self::Large(table) => Some(table.entry(table.find(key)?)),
        }
    }

    pub(crate) fn for_each(self, mut visit: impl FnMut(Entry<'a>)) {
        match self {
            Self::Packed(packed) => packed.iter().for_each(|member| visit(member.into())),
            Self::Large(table) => table.for_each(visit),
        }
    }

    pub(crate) fn scan(self, cursor: u64, count: usize, visit: impl FnMut(Entry<'a>)) -> u64 {
        match self {
            Self::Packed(_) => {
                self.for_each(visit);
                0
            }
            Self::Large(table) => table.scan(cursor, count, visit),
        }
    }

    pub(crate) fn random_at(self, bits: u64) -> Option<At> {
        match self {
            Self::Packed(packed) => packed.nth(below(bits, packed.len())).map(At::Packed),
            Self::Large(table) => table.random(bits).map(At::Large),
        }
    }

    fn at(self, at: At) -> Option<Entry<'a>> {
        match (self, at) {
            (Self::Packed(packed), At::Packed(place)) => Some(packed.member(place).into()),
            (Self::Large(table), At::Large(slot)) => Some(table.entry(slot)),
            _ => None,
        }
    }

    pub(crate) fn random(self, bits: u64) -> Option<Entry<'a>> {
        self.at(self.random_at(bits)?)
    }

    pub(crate) fn random_distinct(
        self,
        count: usize,
        mut bits: impl FnMut() -> u64,
        mut visit: impl FnMut(Entry<'a>),
    ) {
        let len = self.len();
        match self {
            Self::Large(table) if count < len / 3 => draw(table, count, bits, visit),
            _ if count >= len => self.for_each(visit),
            _ => {
                let mut selection = Selection {
                    left: len,
                    wanted: count,
                };
                self.for_each(|entry| {
                    if selection.takes(&mut bits) {
                        visit(entry);
                    }
                });
            }
        }
    }
}

/// Draws members until `count` different ones have been met. At most a third of all are wanted, so
/// two of three draws meet a new one. Should random bits be so bad that draws do not get there, the
/// first others are visited.
fn draw<'a>(
    table: &'a Table,
    count: usize,
    mut bits: impl FnMut() -> u64,
    mut visit: impl FnMut(Entry<'a>),
) {
    let mut met = HashSet::with_capacity(count);
    for _ in 0..DRAWS_MIN + DRAWS * count {
        if met.len() == count {
            return;
        }
        let Some(slot) = table.random(bits()) else {
            return;
        };
        if met.insert(slot) {
            visit(table.entry(slot));
        }
    }
    table.for_each_slot(|slot| {
        if met.len() < count && met.insert(slot) {
            visit(table.entry(slot));
        }
    });
}
