//! Removes entries: one for a caller, those that are due, those that were invalidated, or all at
//! once. Each removal is counted and filed.

use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;
use tidewheel_store::{Progress, Removed, Slot};
use tidewheel_time::Moment;

use super::Shard;
use super::effects::Event;
use super::rules::Hashed;
use crate::planted::{Fault, is_planted};
use crate::removal::RemovalCause;
use crate::stats::Count;

impl<K, V, S> Shard<K, V, S> {
    /// Gives back to the account what the shard does not need any more.
    pub(crate) fn give_back(&mut self) {
        let surplus = self.rules.account.surplus(self.lent, self.store.weight());
        if surplus > 0 {
            self.lent -= surplus;
            if is_planted(Fault::WeightLeak) {
                return;
            }
            self.rules.account.give_back(surplus);
        }
    }

    /// Takes every entry out, in one step. Its events are treated as one: all are filed, or none
    /// where the queue is full and loses what comes.
    pub(crate) fn clear(&mut self, cause: RemovalCause) {
        let store = self.store.take_all();
        self.store.defer_frees();
        self.store.continue_versions(&store);
        let len = store.len();
        self.effects.counts.add(Count::Removal, len as u64);
        self.published = u64::MAX;
        self.republish = true;
        self.flights.clear(&mut self.effects.garbage.keys);
        if let Some(memory) = self.negatives.take() {
            self.effects.garbage.rare().memories.push(memory);
        }
        let listens = self.rules.events.has_listener() && len > 0;
        let is_lost = listens && self.rules.events.is_full_and_lossy(cause);
        let entries = (self.rules.new_emptied)(store);
        if listens && !is_lost {
            self.rules.events.add(len);
            self.effects.outbox.push(Event::All(entries, cause));
        } else {
            let lost = if is_lost { len as u64 } else { 0 };
            self.effects.counts.add(Count::EventDropped, lost);
            self.effects.garbage.rare().stores.push(entries);
        }
        self.give_back();
    }

    /// Removes an entry; with it, why it was not there for readers.
    pub(crate) fn take_slot(
        &mut self,
        place: u32,
        slot: Slot,
        now: Moment,
    ) -> (Removed<K, V>, Option<RemovalCause>) {
        let dead_by = self.dead_by(slot, now);
        let removed = self.store.remove(slot, place);
        self.removals += 1;
        self.give_back();
        (removed, dead_by)
    }

    /// Removes an entry and files it, for this cause if it was alive; tells whether it was.
    pub(crate) fn remove_slot(
        &mut self,
        place: u32,
        slot: Slot,
        cause: RemovalCause,
        now: Moment,
    ) -> bool {
        let (removed, dead_by) = self.take_slot(place, slot, now);
        self.effects
            .removed(&self.rules, removed, dead_by.unwrap_or(cause), now.tick());
        dead_by.is_none()
    }

    /// Removes a key's entry if a tag of it was invalidated. Another one may have come since that
    /// was seen.
    pub(crate) fn remove_invalidated(
        &mut self,
        hash: Hashed,
        is: &dyn Fn(&K) -> bool,
        now: Moment,
    ) {
        let slot = self.store.find(hash.place(), is);
        let slot = slot.filter(|slot| {
            !self.rules.tags.is_current(self.store.label_of(*slot)) || is_planted(Fault::LazyDelete)
        });
        if let Some(slot) = slot {
            let cause = RemovalCause::Invalidated;
            self.remove_slot(hash.place(), slot, cause, now);
        }
    }

    /// As [`remove_slot`](Self::remove_slot), of a key, which may not be there.
    pub(crate) fn remove<Q: Equivalent<K> + ?Sized>(
        &mut self,
        hash: Hashed,
        key: &Q,
        cause: RemovalCause,
        now: Moment,
    ) -> bool {
        let slot = self.find(hash, key);
        slot.is_some_and(|slot| self.remove_slot(hash.place(), slot, cause, now))
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Shard<K, V, S> {
    /// Removes due entries, touching at most `budget` timer records.
    #[inline(never)]
    pub(crate) fn expire(&mut self, now: u64, budget: u32) -> Progress {
        let Self {
            rules,
            store,
            effects,
            negatives,
            ..
        } = self;
        let place_of = |key: &K| rules.place_of(key);
        let forgotten = negatives.expire(now, budget, &place_of, &mut effects.garbage);
        let budget = budget.saturating_sub(forgotten.moved).max(1);
        let (mut expired, mut removed) = (0, 0);
        let mut progress = store.expire(now, budget, &place_of, |entry| {
            removed += 1;
            let cause = rules.cause_of(entry.label, RemovalCause::Expired);
            expired += u32::from(cause == RemovalCause::Expired);
            effects.removed(rules, entry, cause, now);
        });
        self.removals = self.removals.saturating_add(removed);
        self.republish = true;
        // What was invalidated has not expired: its record was merely dropped.
        progress.fired = expired;
        progress.moved += forgotten.moved + (removed - expired);
        progress.backlog |= forgotten.backlog;
        progress
    }

    /// Removes the invalidated ones of the next entries.
    pub(crate) fn sweep(&mut self, before: u32, count: u32, now: Moment) {
        let mut invalidated: Vec<Slot> = Vec::new();
        self.store.scan_labels(before, count, |slot, label| {
            if !self.rules.tags.is_current(label) && !is_planted(Fault::Sweep) {
                invalidated.push(slot);
            }
        });
        for slot in invalidated {
            let place = self.store.place(slot, &|key| self.rules.place_of(key));
            // Somebody removed it: slots and index do not part.
            let Some(place) = place else { continue };
            self.remove_slot(place, slot, RemovalCause::Invalidated, now);
        }
    }
}
