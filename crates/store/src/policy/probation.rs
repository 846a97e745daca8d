//! The queue of entries that have yet to be asked for again, oldest first.
//!
//! An entry that leaves early is not looked for: its place goes stale and is skipped when it is met. A
//! slot may have a new tenant by then, so while there are stale places a place is believed only if the
//! tenant's fingerprint is the one that was queued.

use std::collections::VecDeque;

use super::{Region, Residents};

/// Places that one insertion may tidy while more places are stale than live.
const TIDIED_PER_INSERT: usize = 2;

/// One queued entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) id: u32,
    /// Kept so that an eviction need not hash the key for it.
    pub(super) fingerprint: u32,
}

/// Entries on probation in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Probation {
    places: VecDeque<Place>,
    /// Places whose entry left otherwise than through `pop`.
    stale: usize,
    /// Summed weight of the entries that are queued and live.
    weight: u64,
}

impl Probation {
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    pub(super) fn push<R: Residents>(&mut self, residents: &R, place: Place, weight: u32) {
        self.places.push_back(place);
        self.weight += u64::from(weight);
        self.tidy(residents);
    }

    /// The entry that has waited longest, stale places skipped (`steps` counts them down).
    pub(super) fn pop<R: Residents>(&mut self, residents: &R, steps: &mut u32) -> Option<Place> {
        while *steps > 0 {
            *steps -= 1;
            let place = self.places.pop_front()?;
            if self.is_live(residents, place) {
                self.weight = self
                    .weight
                    .saturating_sub(residents.weight(place.id).into());
                return Some(place);
            }
            self.stale = self.stale.saturating_sub(1);
        }
        None
    }

    /// The place whose turn comes next.
    #[inline]
    pub(super) fn front(&self) -> Option<Place> {
        self.places.front().copied()
    }

    /// An entry of this queue is gone, or has another id now.
    pub(super) fn left(&mut self, weight: u32) {
        self.stale += 1;
        self.weight = self.weight.saturating_sub(weight.into());
    }

    /// An entry of this queue has another weight now.
    pub(super) fn reweighed(&mut self, old: u32, new: u32) {
        self.weight = self.weight.saturating_sub(old.into()) + u64::from(new);
    }

    pub(super) fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place>()
    }

    fn is_live<R: Residents>(&self, residents: &R, place: Place) -> bool {
        let queued = |state| Region::of(state) == Region::Probation;
        residents.state(place.id).is_some_and(queued)
            && (self.stale == 0 || Self::is_tenant(residents, place))
    }

    /// Whether the slot has the tenant that was queued. One whose key cannot be hashed is taken for it: it
    /// must not lose its last place. Should it have another one, that goes stale.
    fn is_tenant<R: Residents>(residents: &R, place: Place) -> bool {
        let fingerprint = residents.fingerprint(place.id);
        fingerprint.is_none_or(|fingerprint| fingerprint == place.fingerprint)
    }

    /// Keeps stale places from outnumbering the live: looks at the oldest, drops them if stale and
    /// queues them again if not. That turns the order a little, when most entries leave before their
    /// turn comes anyway.
    fn tidy<R: Residents>(&mut self, residents: &R) {
        for _ in 0..TIDIED_PER_INSERT {
            if self.stale <= self.places.len() / 2 {
                return;
            }
            let Some(place) = self.places.pop_front() else {
                return;
            };
            if self.is_live(residents, place) {
                self.places.push_back(place);
            } else {
                self.stale = self.stale.saturating_sub(1);
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
                && Self::is_tenant(residents, *place);
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
