//! The model of tags, pins and the capacity.

use super::model::{Effects, Entry, Model};
use super::value::Probe;

impl Model {
    /// Readers no longer see the entries with the tag; the sweep removes them.
    pub(super) fn invalidate_tag(&mut self, tag: u8) {
        let any = self.cache.invalidate_tag(&tag.to_string());
        let now = self.tick();
        let mut concerned = false;
        for entry in self.entries.values_mut() {
            if entry.tags.are_hit_by(tag) {
                concerned |= entry.is_live(now) == Some(true);
                entry.invalidated = true;
            }
        }
        // The last entry with the tag may have left without the model knowing.
        assert!(
            any || !concerned || !self.setup.is_told(),
            "invalidation of {tag}"
        );
    }

    pub(super) fn pin(&mut self, key: u16, pinned: bool) {
        let there = match pinned {
            true => self.cache.pin(&Probe(key)),
            false => self.cache.unpin(&Probe(key)),
        };
        assert_eq!(there, self.is_live(key), "pin of {key}");
        assert_eq!(self.cache.is_pinned(&Probe(key)), there && pinned);
        if let Some(entry) = self.entries.get_mut(&key).filter(|_| there) {
            entry.pinned = pinned;
        }
    }

    /// Entries that are too much for a smaller capacity leave at once.
    pub(super) fn set_capacity(&mut self, capacity: u64, effects: &mut Effects) {
        let changed = self.cache.set_max_capacity(capacity);
        assert_eq!(changed, self.capacity.is_some());
        if changed {
            self.capacity = Some(capacity);
            // Nothing but what is pinned may exceed it from now on.
            self.weight_before = 0;
            effects.makes_room = true;
        }
        assert_eq!(self.cache.max_capacity(), self.capacity);
    }

    /// The weight of pinned entries.
    pub(super) fn pinned_weight(&self) -> u64 {
        let pinned = self.entries.values().filter(|entry| entry.pinned);
        pinned.map(|entry| u64::from(entry.weight)).sum()
    }

    /// Returns whether an entry finds no room beside those that are pinned: then it may be evicted
    /// at once.
    pub(super) fn is_crowded_out(&self, entry: &Entry) -> bool {
        let others = self.pinned_weight() - u64::from(entry.weight) * u64::from(entry.pinned);
        !entry.pinned
            && self
                .capacity
                .is_some_and(|capacity| others + u64::from(entry.weight) > capacity)
    }
}
