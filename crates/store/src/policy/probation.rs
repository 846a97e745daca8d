//! The queue of entries that have yet to be asked for again, oldest first.
//!
//! A queued entry is known by its *place* in the queue: its id, and a fingerprint of its key. When
//! an entry leaves early, its place stays and is *stale*. It is skipped when its turn comes. Its
//! slot may have another entry by then. So while there are stale places, a place counts only if the
//! fingerprint of the slot's entry is the one that was queued.

use std::collections::VecDeque;

use super::region::Region;
use super::residents::{Resident, Residents};
use super::weight::Weight;

/// A full queue grows by this part of itself: it is a twelfth of the entries, and holds half as
/// much in vain as one that doubles.
const GROWTH: usize = 4;

/// Places that one insertion may tidy while more places are stale than live.
const TIDIED_PER_INSERT: usize = 2;

/// One queued entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedEntry {
    pub(crate) id: u32,
    /// Kept so that an eviction does not have to hash the key.
    pub(crate) fingerprint: u32,
}

/// Entries on probation in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Probation {
    places: VecDeque<QueuedEntry>,
    /// Places whose entry left early.
    stale: usize,
    /// Summed weight of the entries that are queued and live.
    weight: Weight,
}

impl Probation {
    pub(super) fn weight(&self) -> u64 {
        self.weight.total()
    }

    /// An entry of this weight will be pushed.
    #[inline]
    pub(super) fn expect(&mut self, weight: u32) {
        self.weight.add(weight);
    }

    /// Queues an entry that was [expected](Self::expect).
    #[inline]
    pub(super) fn push<R: Residents>(&mut self, residents: &R, place: QueuedEntry) {
        if self.places.len() == self.places.capacity() {
            self.grow();
        }
        self.places.push_back(place);
        self.tidy(residents);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.places
            .reserve_exact(self.places.len() / GROWTH + GROWTH);
    }

    /// Takes out the place of the entry that has waited longest. Skips stale places; each place
    /// looked at takes one of the `steps`.
    #[inline(always)]
    pub(super) fn pop<R: Residents>(
        &mut self,
        residents: &R,
        steps: &mut u32,
    ) -> Option<(QueuedEntry, Resident)> {
        while *steps > 0 {
            *steps -= 1;
            let place = self.pop_place()?;
            let resident = self.leave(residents, place);
            if let Some(resident) = resident {
                return Some((place, resident));
            }
        }
        None
    }

    /// Takes out the place that has waited longest.
    #[inline(always)]
    pub(super) fn pop_place(&mut self) -> Option<QueuedEntry> {
        self.places.pop_front()
    }

    /// The entry of a place that was taken out leaves the queue. `None` if the place is stale.
    #[inline(always)]
    pub(super) fn leave<R: Residents>(
        &mut self,
        residents: &R,
        place: QueuedEntry,
    ) -> Option<Resident> {
        let resident = residents.resident(place.id);
        let resident = resident.filter(|found| self.is_live(residents, place, found.state));
        match &resident {
            Some(resident) => self.weight.subtract(resident.weight),
            None => self.count_skipped(),
        }
        resident
    }

    /// Returns whether there may be places of entries that have left.
    #[inline]
    pub(super) fn has_stale(&self) -> bool {
        self.stale > 0
    }

    /// The place whose turn comes next.
    #[inline]
    pub(super) fn front(&self) -> Option<QueuedEntry> {
        self.places.front().copied()
    }

    /// An entry of this queue is gone, or has another id now.
    pub(super) fn forget(&mut self, weight: u32) {
        self.stale += 1;
        self.weight.subtract(weight);
    }

    /// An entry of this queue has another weight now.
    pub(super) fn reweighed(&mut self, old: u32, new: u32) {
        self.weight.reweighed(old, new);
    }

    pub(super) fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<QueuedEntry>()
    }

    /// Returns whether a place is that of the entry in its slot, which has this state.
    #[inline]
    fn is_live<R: Residents>(&self, residents: &R, place: QueuedEntry, state: u8) -> bool {
        Region::of(state) == Region::Probation
            && (self.stale == 0 || Self::is_queued(residents, place))
    }

    /// Returns whether the slot has the entry that was queued. An entry whose key cannot be hashed
    /// counts as that one, so that it does not lose its last place. If it has another place too,
    /// that one goes stale.
    fn is_queued<R: Residents>(residents: &R, place: QueuedEntry) -> bool {
        let fingerprint = residents.fingerprint(place.id);
        fingerprint.is_none_or(|fingerprint| fingerprint == place.fingerprint)
    }

    /// A stale place was taken out.
    fn count_skipped(&mut self) {
        debug_assert!(self.stale > 0, "more places were skipped than went stale");
        self.stale = self.stale.saturating_sub(1);
    }

    /// Keeps stale places from outnumbering live ones: takes the oldest places, drops the stale
    /// ones and queues the live ones again, at the end. That changes the order, but only while most
    /// entries leave before their turn comes anyway.
    #[inline(always)]
    fn tidy<R: Residents>(&mut self, residents: &R) {
        for _ in 0..TIDIED_PER_INSERT {
            if self.stale <= self.places.len() / 2 {
                return;
            }
            self.tidy_one(residents);
        }
    }

    #[cold]
    fn tidy_one<R: Residents>(&mut self, residents: &R) {
        if let Some(place) = self.places.pop_front() {
            let state = residents.state(place.id);
            if state.is_some_and(|state| self.is_live(residents, place, state)) {
                self.places.push_back(place);
            } else {
                self.count_skipped();
            }
        }
    }
}

#[cfg(test)]
impl Probation {
    /// Panics unless every live entry has one place and stale places are within bounds.
    pub(super) fn validate<R: Residents>(&self, residents: &R) {
        let mut seen = std::collections::HashSet::new();
        for place in &self.places {
            let is_live = residents
                .state(place.id)
                .is_some_and(|state| Region::of(state) == Region::Probation)
                && Self::is_queued(residents, *place);
            if is_live {
                seen.insert(place.id);
            }
        }
        let live = (0..residents.end())
            .filter(|id| {
                residents
                    .state(*id)
                    .is_some_and(|state| Region::of(state) == Region::Probation)
            })
            .count();
        assert_eq!(seen.len(), live, "every entry on probation has a place");
        assert!(self.stale <= self.places.len(), "stale places");
        assert!(
            self.stale <= live + self.places.len() / 2 + 2,
            "{} stale of {}",
            self.stale,
            self.places.len()
        );
    }
}
