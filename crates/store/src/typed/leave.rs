//! Removes entries: on request, at their deadline, or by eviction.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tidewheel_timer::{BATCH_MAX, Progress, TimerQueue};

use super::attributes::Removed;
use super::entries::IntoEntries;
use super::store::TypedStore;
use super::view::{View, hashed};
use crate::slot::Slot;

impl<K, V> TypedStore<K, V> {
    /// Removes an entry. O(1).
    pub fn remove(&mut self, slot: Slot, place: u32) -> Removed<K, V> {
        let state = self.entry(slot).policy();
        self.policy.removed(state, self.weight_of(slot));
        self.take(slot.0, place)
    }

    /// Removes the entries whose deadline is at or before `now`, and hands them to `sink` in the
    /// order of their deadlines. Touches at most `budget` timer records.
    pub fn expire(
        &mut self,
        now: u64,
        budget: u32,
        place_of: &impl Fn(&K) -> u32,
        mut sink: impl FnMut(Removed<K, V>),
    ) -> Progress {
        let Self {
            slots,
            index,
            wheel,
            policy,
            weight,
            timed,
            ..
        } = self;
        wheel.advance(slots, now, budget, |slots, due| {
            let mut places = [0; BATCH_MAX];
            // First find all buckets, so that their cache misses overlap; then remove.
            let hashed = catch_unwind(AssertUnwindSafe(|| {
                let mut warmth = 0;
                for (place, &id) in places.iter_mut().zip(due) {
                    if let Some(entry) = slots.get(id) {
                        *place = place_of(entry.key());
                        warmth ^= index.touch(*place);
                    }
                }
                std::hint::black_box(warmth);
            }));
            if let Err(panic) = hashed {
                // The wheel has no record of these any more, so they must leave. Find their places
                // by a walk.
                std::mem::forget(panic);
                for (place, &id) in places.iter_mut().zip(due) {
                    *place = index.place_of(id).unwrap_or(*place);
                }
            }
            for (&place, &id) in places.iter().zip(due) {
                index.remove(place, id);
                let (entry_weight, label) = slots.strip(id);
                let Some(entry) = slots.release(id) else {
                    continue;
                };
                *timed -= 1;
                *weight -= u64::from(entry_weight);
                policy.removed(entry.policy, entry_weight);
                sink(Removed {
                    deadline: entry.deadline(),
                    weight: entry_weight,
                    label,
                    key: entry.key,
                    value: entry.value,
                });
            }
        })
    }

    /// Removes one entry that is due. [`expire`](Self::expire) may have to move many timer records
    /// before it meets such an entry; this call looks at `look` records instead. If it returns
    /// `None`, entries may still be due.
    pub fn expire_one(
        &mut self,
        now: u64,
        look: usize,
        place_of: &impl Fn(&K) -> u32,
    ) -> Option<Removed<K, V>> {
        let slot = Slot(self.wheel.find_due(&self.slots, now, look)?);
        let place = self.place(slot, place_of)?;
        Some(self.remove(slot, place))
    }

    /// Removes the entry that the policy chooses; `None` when all are pinned.
    pub fn evict(&mut self, place_of: &impl Fn(&K) -> u32) -> Option<Removed<K, V>> {
        self.evict_other(None, place_of)
    }

    /// As [`evict`](Self::evict), but spares `kept`.
    pub fn evict_other(
        &mut self,
        kept: Option<Slot>,
        place_of: &impl Fn(&K) -> u32,
    ) -> Option<Removed<K, V>> {
        let mut view = View {
            slots: &mut self.slots,
            place_of,
            kept: kept.map_or(0, |slot| slot.0),
        };
        let id = self.policy.victim(&mut view)?.id;
        let place = hashed(place_of, self.slots.get(id)?.key());
        let place = place.or_else(|| self.index.place_of(id))?;
        Some(self.take(id, place))
    }

    /// All entries, by value: key, value and deadline. O(n) to the end.
    pub fn into_entries(self) -> IntoEntries<K, V> {
        // Readers without a lock find nothing from now on.
        drop(self.published);
        IntoEntries(self.slots.into_entries())
    }

    /// Takes an entry out of everything but the policy.
    fn take(&mut self, id: u32, place: u32) -> Removed<K, V> {
        let deadline = self.entry(Slot(id)).deadline();
        self.stop_timer(id);
        self.index.remove(place, id);
        let (weight, label) = self.slots.strip(id);
        self.weight -= u64::from(weight);
        let entry = self.slots.release(id).expect("a slot names an entry");
        Removed {
            key: entry.key,
            value: entry.value,
            deadline,
            weight,
            label,
        }
    }
}
