//! Looks for an answer without a load: a value, or a remembered error or absence.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use equivalent::Equivalent;
use tidewheel_store::{FirstLook, Lens, Slot};
use tidewheel_time::Moment;

use super::Found;
use super::fetched::{Fetched, Outcome};
use super::settle::AfterRead;
use crate::core::inner::Inner;
use crate::shard::Shard;
use crate::shard::flight::Negative;
use crate::shard::hash::Hashed;
use crate::shard::retry::may_fail;
use crate::stats::Count;
use crate::sync::ReadGuard;

impl Negative {
    /// Returns whether this answers a caller whose loader fails with `E`.
    pub(super) fn answers<E: Send + Sync + 'static>(&self, absent: bool) -> bool {
        match self {
            Self::Absent => absent,
            Self::Error(_) => self.is_error::<E>(),
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Looks for an answer under the reader lock, for those who have not found one at first.
    #[inline(never)]
    pub(super) fn look_up_again<E, Q>(
        &self,
        hash: Hashed,
        key: &Q,
        absent: bool,
    ) -> Option<Found<V, E>>
    where
        V: Clone,
        E: Send + Sync + 'static,
        Q: Equivalent<K> + ?Sized,
    {
        self.look_up(hash, key, absent, false)
    }

    /// Looks for an answer, under the reader lock if it takes that. Counts the lookup if it is the
    /// first one.
    // Where it is first asked for, so that a hit is as quick as `get`.
    #[inline(always)]
    pub(super) fn look_up<E, Q>(
        &self,
        hash: Hashed,
        key: &Q,
        absent: bool,
        first: bool,
    ) -> Option<Found<V, E>>
    where
        V: Clone,
        E: Send + Sync + 'static,
        Q: Equivalent<K> + ?Sized,
    {
        if Lens::suits(move || self.cell(hash).lens.as_ref()) {
            let clock = |cell: &_| self.time_in(cell);
            let copied = self.read_optimistically(hash, key, self.time.is_given(), clock);
            if let Some(Some(value)) = copied {
                return Some(self.hit(value, first));
            }
        }
        let cell = self.cell(hash);
        let shard = self.read(cell);
        let entry = match Self::look(|| self.time_in(cell), &shard, hash, key) {
            FirstLook::Found(entry, now) if self.is_plainly_there(&entry, None, now) => entry,
            FirstLook::Nowhere => {
                return self.answer_without_entry(shard, hash, key, absent, first);
            }
            _ => return self.look_up_closely(shard, hash, key, absent, first),
        };
        entry.hit();
        let value = entry.value().clone();
        drop(shard);
        Some(self.hit(value, first))
    }

    #[inline(always)]
    fn hit<E>(&self, value: V, first: bool) -> Found<V, E> {
        if first {
            self.counters.add(Count::Hit, 1);
        }
        Fetched::new(Ok(Some(value)), Outcome::Hit)
    }

    /// The entry is not where nearly all are, or it may be over, or a read does more to it than
    /// count a hit.
    #[cold]
    #[inline(never)]
    fn look_up_closely<E, Q>(
        &self,
        shard: ReadGuard<'_, Shard<K, V>>,
        hash: Hashed,
        key: &Q,
        absent: bool,
        first: bool,
    ) -> Option<Found<V, E>>
    where
        V: Clone,
        E: Send + Sync + 'static,
        Q: Equivalent<K> + ?Sized,
    {
        let now = self.time.now();
        let Some(slot) = shard.find_live(&self.rules, hash, key, now) else {
            return self.answer_without_entry(shard, hash, key, absent, first);
        };
        if shard.is_stale(slot, now) {
            return self.answer_with_stale(shard, slot, hash, key, first, now);
        }
        shard.store.hit(slot);
        let renewal = self.used(&shard, slot, now);
        let value = shard.store.value(slot).clone();
        drop(shard);
        let after = AfterRead {
            renewal,
            stale: false,
            refresh: None,
            lookup: first.then_some(true),
        };
        self.settle(hash, key, after);
        Some(Fetched::new(Ok(Some(value)), Outcome::Hit))
    }

    /// Answers for a key without a live entry: with the old value if the last load has just failed,
    /// or with a remembered error or absence.
    #[cold]
    fn answer_without_entry<E, Q>(
        &self,
        shard: ReadGuard<'_, Shard<K, V>>,
        hash: Hashed,
        key: &Q,
        absent: bool,
        first: bool,
    ) -> Option<Found<V, E>>
    where
        V: Clone,
        E: Send + Sync + 'static,
        Q: Equivalent<K> + ?Sized,
    {
        let now = self.time.now();
        let put_off = shard
            .find(hash, key)
            .filter(|slot| may_fail::<E>() && shard.is_put_off(&self.rules, *slot, now))
            .map(|slot| shard.store.value(slot).clone());
        let remembered = shard
            .negatives
            .find(hash.place(), |stored| key.equivalent(stored), now)
            .filter(|negative| negative.answers::<E>(absent))
            .cloned();
        drop(shard);
        if first {
            self.counters.add(Count::Miss, 1);
        }
        if let Some(old) = put_off {
            self.count_stale_on_error();
            let error = remembered.as_ref().and_then(Negative::as_error);
            return Some(Fetched::stale(Ok(Some(old)), error));
        }
        let negative = remembered?;
        self.counters.add(Count::NegativeHit, 1);
        self.negative_answer(hash, key, &negative)
    }

    /// The entry is past its soft deadline: it is served if somebody else loads it again, or did so
    /// in vain a moment ago.
    #[cold]
    fn answer_with_stale<E, Q>(
        &self,
        shard: ReadGuard<'_, Shard<K, V>>,
        slot: Slot,
        hash: Hashed,
        key: &Q,
        first: bool,
        now: Moment,
    ) -> Option<Found<V, E>>
    where
        V: Clone,
        Q: Equivalent<K> + ?Sized,
    {
        // Declared before the lock: if the clone panics, the key in it is dropped without it.
        let refresh;
        let shard = shard;
        refresh = self.refresh_wanted(&shard, hash, slot, now);
        let stale = self.rules.config.refresher.is_some()
            || !shard.is_due(slot, now)
            || shard.is_being_loaded(hash, key, now);
        let mut renewal = None;
        if stale {
            shard.store.hit(slot);
            renewal = self.used(&shard, slot, now);
        }
        let found = stale.then(|| shard.store.value(slot).clone());
        drop(shard);
        let after = AfterRead {
            renewal,
            stale,
            refresh,
            lookup: first.then_some(stale),
        };
        self.settle(hash, key, after);
        found.map(|value| Fetched::new(Ok(Some(value)), Outcome::Stale))
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
