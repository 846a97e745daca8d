//! Looks for an answer without a load: a value, or a remembered error or absence.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use equivalent::Equivalent;

use super::Found;
use super::fetched::{Fetched, Outcome};
use crate::core::inner::Inner;
use crate::core::read::Purpose;
use crate::shard::flight::Negative;
use crate::shard::rules::Hashed;
use crate::shard::sight::StandIn;
use crate::stats::Count;

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Looks for an answer, under the reader lock if it takes that. Counts the lookup if it is the
    /// first one.
    // Where it is first asked for, so that a hit is as quick as `get`.
    #[inline(always)]
    pub(super) fn look_up<E, Q>(
        &self,
        hash: Hashed,
        key: &Q,
        absent: bool,
        purpose: Purpose,
    ) -> Option<Found<V, E>>
    where
        V: Clone,
        E: Send + Sync + 'static,
        Q: Equivalent<K> + ?Sized,
    {
        let clock = |cell: &_| self.time_in(cell);
        let found = self.read_value(hash, key, clock, purpose, |value, stale| {
            let outcome = if stale { Outcome::Stale } else { Outcome::Hit };
            Fetched::new(Ok(Some(value)), outcome)
        });
        match found {
            Some(found) => Some(found),
            None => self.answer_without_entry(hash, key, absent),
        }
    }

    /// Answers for a key without a live entry: with the old value if the last load has just failed,
    /// or with a remembered error or absence.
    #[cold]
    fn answer_without_entry<E, Q>(&self, hash: Hashed, key: &Q, absent: bool) -> Option<Found<V, E>>
    where
        V: Clone,
        E: Send + Sync + 'static,
        Q: Equivalent<K> + ?Sized,
    {
        let (shard, now) = self.read_now(self.cell(hash));
        let negative = match shard.stand_in::<E, _, _>(&self.rules, hash, key, absent, now)? {
            StandIn::Old(slot, error) => {
                let old = shard.store.value(slot).clone();
                let error = error.and_then(Negative::as_error);
                drop(shard);
                self.count_stale_on_error();
                return Some(Fetched::stale(Ok(Some(old)), error));
            }
            StandIn::Remembered(negative) => negative.clone(),
        };
        drop(shard);
        self.counters.add(Count::NegativeHit, 1);
        self.negative_answer(hash, key, &negative)
    }

    /// An error or absence as an answer; in place of an error the old value, if it may still be
    /// served.
    pub(super) fn negative_answer<E, Q>(
        &self,
        hash: Hashed,
        key: &Q,
        negative: &Negative,
    ) -> Option<Found<V, E>>
    where
        V: Clone,
        E: Send + Sync + 'static,
        Q: Equivalent<K> + ?Sized,
    {
        match negative {
            Negative::Absent => Some(Fetched::new(Ok(None), Outcome::Negative)),
            Negative::Error(_) => {
                let error = negative.as_error()?;
                Some(self.in_place_of(error, hash, key, Outcome::Negative))
            }
        }
    }

    /// The old value, if it may be served in place of a loader's error, or else the error, which
    /// comes from `outcome`.
    pub(super) fn in_place_of<E, Q>(
        &self,
        error: Arc<E>,
        hash: Hashed,
        key: &Q,
        outcome: Outcome,
    ) -> Found<V, E>
    where
        V: Clone,
        Q: Equivalent<K> + ?Sized,
    {
        match self.old_value(hash, key) {
            Some(old) => Fetched::stale(Ok(Some(old)), Some(error)),
            None => Fetched::new(Err(error), outcome),
        }
    }

    /// The old value for the case that a loader has failed, until its hard deadline.
    fn old_value<Q>(&self, hash: Hashed, key: &Q) -> Option<V>
    where
        V: Clone,
        Q: Equivalent<K> + ?Sized,
    {
        let old = {
            let (shard, now) = self.read_now(self.cell(hash));
            let slot = shard.find(hash, key)?;
            if !shard.is_kept(&self.rules, slot, now) {
                return None;
            }
            shard.store.value(slot).clone()
        };
        self.count_stale_on_error();
        Some(old)
    }

    fn count_stale_on_error(&self) {
        self.counters.add(Count::Stale, 1);
        self.counters.add(Count::StaleOnError, 1);
    }
}
