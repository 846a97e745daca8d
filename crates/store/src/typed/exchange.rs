//! How a new entry takes the slot of the one that is evicted for it.
//!
//! In a full store every new entry evicts another one. Done one after the other, that would take a slot out of the list of
//! vacant ones and put another one in, and file one timer record and leave another one behind. In one step, the new
//! entry has the old one's slot. It takes over its timer, too: if it ends later than the old one, the wheel is not told.
//! The wheel meets the old one's record in its time, and then files one for the new deadline, as it does when a deadline
//! was prolonged.

use super::attributes::{Attributes, Removed};
use super::store::TypedStore;
use super::view::{View, hashed, label_of, weight_of};
use crate::policy::{Place, Victim};
use crate::shared::Loose;
use crate::slot::Slot;

impl<K, V> TypedStore<K, V> {
    /// As [`insert`](Self::insert) and then [`evict`](Self::evict), in one step: for a store whose weight would be above
    /// its capacity. Returns the new entry's slot, and the entry that was evicted; none if all are pinned. O(1).
    #[allow(
        clippy::too_many_arguments,
        reason = "each is a different kind of fact, and the one caller has them all at hand"
    )]
    #[inline]
    pub fn exchange(
        &mut self,
        place: u32,
        key: K,
        value: V,
        attributes: Attributes,
        now: u64,
        capacity: u64,
        place_of: &impl Fn(&K) -> u32,
    ) -> (Slot, Option<Removed<K, V>>) {
        let total = self.weight + u64::from(attributes.weight);
        let admitted = self.policy.admit(place, attributes.weight, total, capacity);
        let mut view = View {
            slots: &mut self.slots,
            place_of,
            kept: 0,
        };
        let victim = self.policy.victim(&mut view);
        let (id, removed) = match victim {
            Some(victim) => self.put_in_place(victim, place, key, value, place_of),
            None => (self.add_slot(place, Loose::new(key, value)), None),
        };
        self.write_columns(id, &attributes);
        self.weight += u64::from(attributes.weight);
        let had_deadline = removed.as_ref().is_some_and(|old| old.deadline.is_some());
        if had_deadline || attributes.deadline.is_some() {
            self.set_deadline(Slot(id), attributes.deadline, now);
        }
        let mut view = View {
            slots: &mut self.slots,
            place_of,
            kept: 0,
        };
        let place = Place {
            id,
            fingerprint: place,
        };
        self.policy.settle(&mut view, place, admitted);
        self.expect_eviction();
        (Slot(id), removed)
    }

    /// Takes the victim's slot for another entry, with its timer. The victim is in nothing but the policy any more.
    #[inline]
    fn put_in_place(
        &mut self,
        victim: Victim,
        place: u32,
        key: K,
        value: V,
        place_of: &impl Fn(&K) -> u32,
    ) -> (u32, Option<Removed<K, V>>) {
        let id = victim.id;
        let moved = victim
            .fingerprint
            .is_some_and(|old| self.index.exchange(old, place, id));
        if !moved {
            self.move_in_index(id, place, place_of);
        }
        let weight = weight_of(&self.slots, id);
        let label = label_of(&self.slots, id);
        if self.slots.has_columns(id) {
            self.slots.clear_columns(id);
        }
        self.weight -= u64::from(weight);
        let old = self
            .slots
            .exchange(id, key, value)
            .expect("a victim is there");
        let removed = Removed {
            deadline: old.deadline(),
            key: old.key,
            value: old.value,
            weight,
            label,
        };
        (id, Some(removed))
    }

    /// As [`Index::exchange`](crate::index::Index::exchange), where the old place is not at hand.
    fn move_in_index(&mut self, id: u32, place: u32, place_of: &impl Fn(&K) -> u32) {
        let entry = self.slots.get(id).expect("a victim is there");
        let moved =
            hashed(place_of, entry.key()).is_some_and(|old| self.index.exchange(old, place, id));
        if !moved {
            let old = self.index.place_of(id).expect("an entry is in the index");
            self.index.exchange(old, place, id);
        }
    }

    /// Stores an entry in a slot of its own.
    fn add_slot(&mut self, place: u32, entry: Loose<K, V>) -> u32 {
        let id = self.slots.allocate(entry);
        self.index.insert(place, id);
        id
    }
}
