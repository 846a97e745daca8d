//! A reader's view of a key: whether its entry is alive, by its deadline beside the time and its
//! tags beside their invalidations; its value, or an answer in its place.

use equivalent::Equivalent;
use tidewheel_store::Slot;
use tidewheel_time::Moment;

use super::Shard;
use super::config::earlier;
use super::flight::Negative;
use super::loading::may_fail;
use super::rules::Hashed;
use crate::lifetime::Ttl;
use crate::planted::{Fault, is_planted};
use crate::removal::RemovalCause;

/// An entry, for one who reads its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    Live {
        /// True past its soft deadline.
        is_stale: bool,
    },
    /// Its time is over.
    Over,
    /// A tag of it was invalidated.
    Invalidated,
}

/// An answer for a caller whose key has no live entry.
pub(crate) enum StandIn<'s> {
    /// The old value, for the last load has just failed; with its error, if that is remembered.
    Old(Slot, Option<&'s Negative>),
    Remembered(&'s Negative),
}

impl<K, V, S> Shard<K, V, S> {
    /// An entry as a reader sees it that wants none after `until`.
    pub(crate) fn sight(&self, slot: Slot, until: Option<u64>, now: Moment) -> Sight {
        if !self.is_valid(slot) {
            return Sight::Invalidated;
        }
        match is_over(earlier(self.end_of(slot), until), now) {
            true => Sight::Over,
            false => Sight::Live {
                is_stale: self.is_stale(slot, now),
            },
        }
    }

    /// Returns whether the next value of a live entry is for somebody to load, and nobody does.
    pub(crate) fn needs_load<Q: Equivalent<K> + ?Sized>(
        &self,
        hash: Hashed,
        key: &Q,
        slot: Slot,
        now: Moment,
    ) -> bool {
        let is = |stored: &K| key.equivalent(stored);
        self.is_due(slot, now)
            && self.flights.find(hash.0, is).is_none()
            && self.negatives.find(hash.place(), is, now).is_none()
    }

    /// The answer for a caller whose loader may fail with `E`, if the key has no live entry.
    /// `absent`: an absence is an answer.
    pub(crate) fn stand_in<E: Send + Sync + 'static, Q: Equivalent<K> + ?Sized>(
        &self,
        hash: Hashed,
        key: &Q,
        absent: bool,
        now: Moment,
    ) -> Option<StandIn<'_>> {
        let is = |stored: &K| key.equivalent(stored);
        let remembered = self
            .negatives
            .find(hash.place(), is, now)
            .filter(|negative| negative.answers::<E>(absent));
        let old = self
            .find(hash, key)
            .filter(|slot| may_fail::<E>() && self.is_put_off(*slot, now));
        match old {
            Some(old) => Some(StandIn::Old(old, remembered)),
            None => remembered.map(StandIn::Remembered),
        }
    }
}

impl<K, V, S> Shard<K, V, S> {
    /// Finds a key whose entry readers see.
    #[inline]
    pub(crate) fn find_live<Q: Equivalent<K> + ?Sized>(
        &self,
        hash: Hashed,
        key: &Q,
        now: Moment,
    ) -> Option<Slot> {
        let slot = self.find(hash, key)?;
        self.is_live(slot, now).then_some(slot)
    }

    /// The end of an entry as readers see it; the store keeps it for the grace period longer.
    #[inline]
    pub(crate) fn end_of(&self, slot: Slot) -> Option<u64> {
        let (deadline, grace) = (self.store.deadline(slot), self.grace_of(slot));
        deadline.map(|deadline| deadline.saturating_sub(grace))
    }

    /// Returns how long the store keeps an entry after its end.
    #[inline]
    pub(crate) fn grace_of(&self, slot: Slot) -> u64 {
        if self.store.has_attributes(slot) {
            self.rules.config.grace(self.store.grace(slot))
        } else {
            self.rules.config.grace
        }
    }

    /// Returns whether none of an entry's tags was invalidated.
    #[inline(always)]
    fn is_valid(&self, slot: Slot) -> bool {
        !self.store.has_attributes(slot) || self.rules.tags.is_current(self.store.label_of(slot))
    }

    /// Returns whether readers see an entry: its time is not over, and none of its tags was
    /// invalidated.
    #[inline]
    pub(crate) fn is_live(&self, slot: Slot, now: Moment) -> bool {
        !is_over(self.end_of(slot), now) && self.is_valid(slot)
    }

    /// Returns the time that an entry has left.
    pub(crate) fn ttl_of(&self, slot: Slot, now: Moment) -> Ttl {
        if !self.is_live(slot, now) {
            return Ttl::Missing;
        }
        match self.end_of(slot) {
            None => Ttl::Forever,
            Some(end) => Ttl::Left(now.until(end)),
        }
    }

    /// Why an entry is not there for readers; `None` when it is. Nothing tells whether its time was
    /// over before a tag of it was invalidated: then it counts as invalidated.
    pub(crate) fn dead_by(&self, slot: Slot, now: Moment) -> Option<RemovalCause> {
        if self.is_live(slot, now) {
            return None;
        }
        Some(
            self.rules
                .cause_of(self.store.label_of(slot), RemovalCause::Expired),
        )
    }

    /// Returns whether a live entry is past its soft deadline.
    #[inline]
    pub(crate) fn is_stale(&self, slot: Slot, now: Moment) -> bool {
        let soft = || self.store.soft(slot).tick();
        self.store.has_attributes(slot) && is_over(soft(), now) && !is_planted(Fault::Stale)
    }

    /// Returns whether a live entry's next value should be loaded: it is stale, and no load has
    /// failed just now.
    pub(crate) fn is_due(&self, slot: Slot, now: Moment) -> bool {
        is_over(self.store.soft(slot).due(), now)
    }

    /// Returns whether an entry, dead or alive, may be served because a load has failed.
    pub(crate) fn is_kept(&self, slot: Slot, now: Moment) -> bool {
        let store = &self.store;
        !is_over(store.deadline(slot), now) && self.rules.tags.is_current(store.label_of(slot))
    }

    /// Returns whether a dead entry is served without a load because the last load has just failed.
    pub(crate) fn is_put_off(&self, slot: Slot, now: Moment) -> bool {
        let soft = self.store.soft(slot);
        soft.is_put_off()
            && soft.due().is_some_and(|tick| now.tick() < tick)
            && self.is_kept(slot, now)
    }
}

/// Returns whether an end is reached.
#[inline]
pub(crate) fn is_over(end: Option<u64>, now: Moment) -> bool {
    end.is_some_and(|end| now.tick() >= end)
}
