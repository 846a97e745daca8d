//! Stores a new entry in the slot of the one that is evicted for it.
//!
//! In a full store every new entry evicts another one. Done one after the other, that would take a
//! slot out of the list of vacant ones and put another one in, and file one timer record and leave
//! another one behind. In one step, the new entry has the old one's slot. It takes over its timer,
//! too: if it ends later than the old one, the wheel is not told. The wheel meets the old one's
//! record in its time, and then files one for the new deadline, as it does when a deadline was
//! prolonged.

use super::attributes::{Attributes, Removed};
use super::store::TypedStore;
use super::view::{View, hashed};
use crate::policy::{Admitted, Victim};
use crate::shared::DEADLINE_MAX;
use crate::slot::Slot;

impl<K, V> TypedStore<K, V> {
    /// As [`insert`](Self::insert) and then [`evict`](Self::evict), in one step: for a new entry
    /// that has no attribute but its deadline, in a store whose weight would be above its capacity.
    /// Returns the new entry's slot, and the entry that was evicted; none if all are pinned. O(1).
    #[allow(
        clippy::too_many_arguments,
        reason = "each is a different kind of fact, and the one caller has them all at hand"
    )]
    #[inline(always)]
    pub fn exchange(
        &mut self,
        place: u32,
        key: K,
        value: V,
        deadline: Option<u64>,
        now: u64,
        capacity: u64,
        place_of: &impl Fn(&K) -> u32,
    ) -> (Slot, Option<Removed<K, V>>) {
        let admitted = self.policy.admit(place, 1, self.weight + 1, capacity);
        let mut view = View {
            slots: &mut self.slots,
            place_of,
            kept: 0,
        };
        let Some(victim) = self.policy.victim(&mut view) else {
            let slot = self.add_apart(place, key, value, deadline, now, place_of, admitted);
            return (slot, None);
        };
        let id = victim.id;
        self.rename(victim, place, place_of);
        let (mut entry, has_columns) = self.slots.own(id).expect("a victim is there");
        let old_deadline = entry.deadline();
        // Its timer stays, and its record: it comes before the new deadline, or the wheel is told.
        let is_timed = match deadline {
            Some(deadline) => entry.prolong(deadline.min(DEADLINE_MAX)),
            None => old_deadline.is_none(),
        };
        let (key, value) = entry.exchange(key, value);
        entry.set_policy(admitted.state());
        let (weight, label) = match has_columns {
            true => self.slots.strip_columns(id),
            false => (1, 0),
        };
        self.weight = self.weight - u64::from(weight) + 1;
        if !is_timed {
            self.set_deadline(Slot(id), deadline, now);
        }
        self.settle(id, place, place_of, admitted);
        self.expect_eviction();
        let removed = Removed {
            key,
            value,
            deadline: old_deadline,
            weight,
            label,
        };
        (Slot(id), Some(removed))
    }

    /// As [`add`](Self::add), where it is seldom called.
    #[allow(clippy::too_many_arguments, reason = "as of its caller")]
    #[cold]
    #[inline(never)]
    fn add_apart(
        &mut self,
        place: u32,
        key: K,
        value: V,
        deadline: Option<u64>,
        now: u64,
        place_of: &impl Fn(&K) -> u32,
        admitted: Admitted,
    ) -> Slot {
        let attributes = Attributes {
            deadline,
            ..Attributes::default()
        };
        self.add(place, key, value, attributes, now, place_of, admitted)
    }

    /// The victim's id goes on with the key of another place.
    #[inline(always)]
    fn rename(&mut self, victim: Victim, place: u32, place_of: &impl Fn(&K) -> u32) {
        let id = victim.id;
        let moved = victim
            .fingerprint
            .is_some_and(|old| self.index.exchange(old, place, id));
        if !moved {
            self.move_in_index(id, place, place_of);
        }
    }

    /// As [`Index::exchange`](crate::index::Index::exchange), where the old place is not at hand.
    #[inline(never)]
    fn move_in_index(&mut self, id: u32, place: u32, place_of: &impl Fn(&K) -> u32) {
        let entry = self.slots.get(id).expect("a victim is there");
        let moved =
            hashed(place_of, entry.key()).is_some_and(|old| self.index.exchange(old, place, id));
        if !moved {
            let old = self.index.place_of(id).expect("an entry is in the index");
            self.index.exchange(old, place, id);
        }
    }
}
