//! The entries as the policy sees them: each has a state, a weight and a hash.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::slots::Slots;
use crate::policy::{Policy, Resident, Residents};
use crate::shared::Entry;

/// The entries as the policy sees them.
pub(super) struct View<'a, K, V, F> {
    pub(super) slots: &'a mut Slots<K, V>,
    pub(super) place_of: &'a F,
    /// An entry that counts as pinned; 0, which is nobody's id, for none.
    pub(super) kept: u32,
}

impl<K, V, F: Fn(&K) -> u32> Residents for View<'_, K, V, F> {
    #[inline]
    fn state(&self, id: u32) -> Option<u8> {
        self.slots.get(id).map(Entry::policy)
    }

    #[inline]
    fn set_state(&mut self, id: u32, state: u8) {
        if let Some(entry) = self.slots.get(id) {
            entry.set_policy(state);
        }
    }

    #[inline]
    fn is_pinned(&self, id: u32) -> bool {
        id == self.kept || self.slots.get(id).is_some_and(Entry::is_pinned)
    }

    #[inline]
    fn weight(&self, id: u32) -> u32 {
        weight_of(self.slots, id)
    }

    #[inline(always)]
    fn resident(&self, id: u32) -> Option<Resident> {
        let (entry, has_attributes) = self.slots.look(id)?;
        let weight = if has_attributes {
            weight_of(self.slots, id)
        } else {
            1
        };
        Some(Resident {
            state: entry.policy(),
            is_pinned: entry.is_pinned() || id == self.kept,
            weight,
        })
    }

    #[inline]
    fn fingerprint(&self, id: u32) -> Option<u32> {
        hashed(self.place_of, self.slots.get(id)?.key())
    }

    #[inline]
    fn end(&self) -> u32 {
        self.slots.end()
    }
}

/// A key's place; `None` if hashing it panics. Then the caller looks for the entry by a walk:
/// index, wheel and policy must agree also when a key cannot be hashed. The panic's payload is
/// forgotten, since its drop may panic too.
pub(super) fn hashed<K>(place_of: &impl Fn(&K) -> u32, key: &K) -> Option<u32> {
    catch_unwind(AssertUnwindSafe(|| place_of(key)))
        .map_err(std::mem::forget)
        .ok()
}

/// Counts a hit for the policy.
#[inline]
pub(super) fn hit<K, V>(entry: &Entry<K, V>) {
    if let Some(state) = Policy::hit(entry.policy()) {
        entry.set_policy(state);
    }
}

/// Returns the weight that an entry counts against the capacity.
pub(super) fn weight_of<K, V>(slots: &Slots<K, V>, id: u32) -> u32 {
    slots
        .columns(id)
        .map_or(1, |(columns, at)| columns.weight(at))
}

/// The caller's label of an entry.
#[inline]
pub(super) fn label_of<K, V>(slots: &Slots<K, V>, id: u32) -> u64 {
    slots
        .columns(id)
        .map_or(0, |(columns, at)| columns.label.get(at))
}
