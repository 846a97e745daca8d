//! The extras of an entry beside key, value and deadline: attributes, a pin, a version.

use super::attributes::Attributes;
use super::soft::Soft;
use super::store::TypedStore;
use crate::slot::Slot;

impl<K, V> TypedStore<K, V> {
    /// The entry's attributes.
    #[must_use]
    pub fn attributes(&self, slot: Slot) -> Attributes {
        let deadline = self.deadline(slot);
        match self.slots.columns(slot.0) {
            None => Attributes {
                deadline,
                ..Attributes::default()
            },
            Some((columns, at)) => columns.read(at, deadline),
        }
    }

    /// Visits the entries that have a label other than 0, from the last slot down, `count` slots or
    /// pages in a call. It begins below `before`: `u32::MAX` in the first call, then what the call
    /// before has returned. `None` is the end. Entries only move downwards, so a walk to the end
    /// visits every entry that was there when it began and stays.
    pub fn scan_labels(
        &self,
        before: u32,
        count: u32,
        mut visit: impl FnMut(Slot, u64),
    ) -> Option<u32> {
        let mut before = before.min(self.slots.end());
        for _ in 0..count {
            let id = before.checked_sub(1)?;
            before = match self.slots.columns(id) {
                Some((columns, at)) if columns.label.is_present() => {
                    let label = columns.label.get(at);
                    if label != 0 {
                        visit(Slot(id), label);
                    }
                    id
                }
                // Nothing on the whole page.
                _ => self.slots.first_of_page(id),
            };
        }
        Some(before)
    }

    /// All labels other than 0. O(pages) when there are none.
    pub fn labels(&self) -> impl Iterator<Item = u64> + '_ {
        self.slots
            .all_columns()
            .flat_map(|columns| columns.label.iter())
            .filter(|label| *label != 0)
    }

    /// Sets the deadline that sliding may not pass.
    pub fn set_limit(&mut self, slot: Slot, limit: Option<u64>) {
        if limit.is_some() || self.slots.has_columns(slot.0) {
            let (columns, at, len) = self.slots.columns_mut(slot.0);
            columns.set_limit(at, limit, len);
        }
    }

    /// From when on the entry is no longer fresh.
    #[must_use]
    pub fn soft(&self, slot: Slot) -> Soft {
        self.slots
            .columns(slot.0)
            .map_or(Soft::NEVER, |(columns, at)| columns.soft(at))
    }

    /// Sets from when on the entry is no longer fresh.
    pub fn set_soft(&mut self, slot: Slot, soft: Soft) {
        if soft != Soft::NEVER || self.slots.has_columns(slot.0) {
            let (columns, at, len) = self.slots.columns_mut(slot.0);
            columns.set_soft(at, soft, len);
        }
    }

    /// The caller's two other numbers.
    #[must_use]
    pub fn notes(&self, slot: Slot) -> [u64; 2] {
        self.slots
            .columns(slot.0)
            .map_or([0; 2], |(columns, at)| columns.notes(at))
    }

    /// Sets the caller's two other numbers.
    pub fn set_notes(&mut self, slot: Slot, notes: [u64; 2]) {
        if notes != [0; 2] || self.slots.has_columns(slot.0) {
            let (columns, at, len) = self.slots.columns_mut(slot.0);
            columns.set_notes(at, notes, len);
        }
    }

    /// Returns how long the caller keeps the entry beyond the end that its readers see.
    #[inline]
    #[must_use]
    pub fn grace(&self, slot: Slot) -> u64 {
        self.slots
            .columns(slot.0)
            .map_or(0, |(columns, at)| columns.grace.get(at))
    }

    /// Sets how long the caller keeps the entry beyond the end that its readers see.
    pub fn set_grace(&mut self, slot: Slot, grace: u64) {
        if grace != 0 || self.slots.has_columns(slot.0) {
            let (columns, at, len) = self.slots.columns_mut(slot.0);
            columns.set_grace(at, grace, len);
        }
    }

    /// Returns whether the entry is pinned.
    #[must_use]
    pub fn is_pinned(&self, slot: Slot) -> bool {
        self.entry(slot).is_pinned()
    }

    /// Pins the entry or unpins it. A pinned entry is not evicted, but it expires.
    pub fn set_pinned(&mut self, slot: Slot, pinned: bool) {
        self.entry(slot).set_pinned(pinned);
    }

    /// The entry's version. From now on it has one.
    pub fn assign_version(&mut self, slot: Slot) -> u64 {
        match self.version(slot) {
            Some(version) => version,
            None => self.next_version(slot),
        }
    }

    /// The version that was given out last.
    #[must_use]
    pub fn latest_version(&self) -> u64 {
        self.version
    }

    /// From now on gives no version that `before` may have given. For a store that takes its place.
    pub fn continue_versions(&mut self, before: &Self) {
        self.version = self.version.max(before.version);
    }
}
