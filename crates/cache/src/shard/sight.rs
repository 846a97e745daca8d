//! A reader's view of a key: a value, or an answer in its place.

use equivalent::Equivalent;
use tidewheel_store::{Found, Slot};
use tidewheel_time::Moment;

use super::Shard;
use super::config::earlier;
use super::flight::Negative;
use super::hash::Hashed;
use super::life::{end_at, is_over};
use super::retry::may_fail;
use super::rules::Rules;

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

impl<K, V> Shard<K, V> {
    /// An entry as a reader sees it that wants none after `until`.
    pub(crate) fn sight<S>(
        &self,
        rules: &Rules<K, V, S>,
        entry: &Found<'_, K, V>,
        until: Option<u64>,
        now: Moment,
    ) -> Sight {
        let end = end_at(entry.deadline(), self.grace_there(rules, entry));
        if !self.is_valid(rules, entry) {
            return Sight::Invalidated;
        }
        match is_over(earlier(end, until), now) {
            true => Sight::Over,
            false => Sight::Live {
                is_stale: self.is_stale(entry.slot(), now),
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
    pub(crate) fn stand_in<E, Q, S>(
        &self,
        rules: &Rules<K, V, S>,
        hash: Hashed,
        key: &Q,
        absent: bool,
        now: Moment,
    ) -> Option<StandIn<'_>>
    where
        E: Send + Sync + 'static,
        Q: Equivalent<K> + ?Sized,
    {
        let is = |stored: &K| key.equivalent(stored);
        let remembered = self
            .negatives
            .find(hash.place(), is, now)
            .filter(|negative| negative.answers::<E>(absent));
        let old = self
            .find(hash, key)
            .filter(|slot| may_fail::<E>() && self.is_put_off(rules, *slot, now));
        match old {
            Some(old) => Some(StandIn::Old(old, remembered)),
            None => remembered.map(StandIn::Remembered),
        }
    }
}
