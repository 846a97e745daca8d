//! The attributes of an entry, and the forms in which a store returns entries: found, removed, no
//! longer needed.

use tidewheel_timer::FreedRecords;

use super::slots::FreedSlots;
use super::soft::Soft;
use super::view::hit;
use crate::index::FreedBuckets;
use crate::shared::Entry;
use crate::slot::Slot;

/// The attributes of an entry besides key and value. A page of entries has memory for an attribute
/// only once one of its entries has a value other than the default. The deadline always has its
/// place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// In ticks; `None` for no end. Deadlines beyond 2^40 - 2 count as that.
    pub deadline: Option<u64>,
    /// The weight that it counts against the capacity.
    pub weight: u32,
    /// From when on it is no longer fresh.
    pub soft: Soft,
    /// The caller's label: a number that the store keeps and hands back; 0 takes no memory. The
    /// cache keeps an entry's tags in it, the scheduler a periodic task's routine.
    pub label: u64,
    /// The deadline that [`TypedStore::slide`](super::TypedStore::slide) may not pass; `None` for
    /// no limit.
    pub limit: Option<u64>,
    /// Two more numbers of the caller's.
    pub notes: [u64; 2],
    /// The time for which the caller keeps the entry beyond the end that its readers see, as the
    /// caller counts; 0 takes no memory.
    pub grace: u64,
}

impl Attributes {
    /// Returns whether every attribute but the deadline has its default value.
    #[inline]
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let numbers = self.label | self.notes[0] | self.notes[1] | self.grace;
        self.weight == 1 && numbers == 0 && self.soft == Soft::NEVER && self.limit.is_none()
    }
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            deadline: None,
            weight: 1,
            soft: Soft::NEVER,
            label: 0,
            limit: None,
            notes: [0; 2],
            grace: 0,
        }
    }
}

/// An entry that has left the store.
#[derive(Debug, PartialEq, Eq)]
pub struct Removed<K, V> {
    /// Its key.
    pub key: K,
    /// Its value.
    pub value: V,
    /// The deadline it had, in ticks.
    pub deadline: Option<u64>,
    /// The weight that it counted against the capacity.
    pub weight: u32,
    /// The caller's label.
    pub label: u64,
}

/// An entry that was found for reading.
#[derive(Debug)]
pub struct Found<'a, K, V> {
    pub(super) slot: Slot,
    pub(super) entry: &'a Entry<K, V>,
    pub(super) has_attributes: bool,
}

impl<'a, K, V> Found<'a, K, V> {
    /// Where it is.
    #[inline]
    #[must_use]
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// Its value.
    #[inline]
    #[must_use]
    pub fn value(&self) -> &'a V {
        self.entry.value()
    }

    /// Its deadline in ticks.
    #[inline]
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        self.entry.deadline()
    }

    /// Returns whether its deadline `is_ahead`, or it has none. Of two deadlines the later one is
    /// ahead if the earlier one is. An entry without a deadline is told by half of its record, if
    /// 2^32 - 1 is ahead.
    #[inline(always)]
    #[must_use]
    pub fn lasts(&self, is_ahead: impl Fn(u64) -> bool) -> bool {
        self.entry.lasts(is_ahead)
    }

    /// As [`TypedStore::has_attributes`](super::TypedStore::has_attributes).
    #[inline]
    #[must_use]
    pub fn has_attributes(&self) -> bool {
        self.has_attributes
    }

    /// As [`TypedStore::hit`](super::TypedStore::hit).
    #[inline]
    pub fn hit(&self) {
        hit(self.entry);
    }
}

/// The result of a first look at a key.
#[derive(Debug)]
pub enum FirstLook<'a, K, V, T> {
    /// Its entry, and what was returned before that was looked at.
    Found(Found<'a, K, V>, T),
    /// There is none.
    Nowhere,
    /// If there is one, [`TypedStore::find`](super::TypedStore::find) finds it.
    Elsewhere,
}

/// Memory that a store no longer needs. Dropping it frees it.
#[derive(Debug)]
#[allow(dead_code, reason = "kept to be dropped")]
pub struct Freed<K, V> {
    pub(super) slots: Option<FreedSlots<K, V>>,
    pub(super) buckets: Option<FreedBuckets>,
    pub(super) records: Option<FreedRecords>,
}
