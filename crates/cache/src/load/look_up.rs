//! Looks for an answer without a load: a value, or a remembered error or absence.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use equivalent::Equivalent;
use tidewheel_store::{FirstLook, Lens, Slot};

use super::Found;
use super::fetched::{Fetched, Outcome};
use super::settle::AfterRead;
use crate::core::flight::Negative;
use crate::core::hash::Hashed;
use crate::core::inner::Inner;
use crate::core::retry::may_fail;
use crate::core::shard::Shard;
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
        let live = |slot: &Slot| self.is_live(&shard.store, *slot);
        let Some(slot) = Self::find(&shard, hash, key).filter(live) else {
            return self.answer_without_entry(shard, hash, key, absent, first);
        };
        if self.is_stale(&shard.store, slot) {
            return self.answer_with_stale(shard, slot, hash, key, first);
        }
        shard.store.hit(slot);
        let renewal = self.used(&shard, slot);
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
        let put_off = Self::find(&shard, hash, key)
            .filter(|slot| may_fail::<E>() && self.is_put_off(&shard.store, *slot))
            .map(|slot| shard.store.value(slot).clone());
        let remembered = shard
            .negatives
            .find(hash.place(), |stored| key.equivalent(stored), &self.time)
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
    ) -> Option<Found<V, E>>
    where
        V: Clone,
        Q: Equivalent<K> + ?Sized,
    {
        // Declared before the lock: if the clone panics, the key in it is dropped without it.
        let refresh;
        let shard = shard;
        refresh = self.refresh_wanted(&shard, hash, slot);
        let stale = self.config.refresher.is_some()
            || !self.is_due(&shard.store, slot)
            || self.is_being_loaded(&shard, hash, key);
        let mut renewal = None;
        if stale {
            shard.store.hit(slot);
            renewal = self.used(&shard, slot);
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
            let shard = self.read(self.cell(hash));
            let store = &shard.store;
            let slot = Self::find(&shard, hash, key)?;
            if !self.is_kept(store, slot) {
                return None;
            }
            store.value(slot).clone()
        };
        self.count_stale_on_error();
        Some(old)
    }

    fn count_stale_on_error(&self) {
        self.counters.add(Count::Stale, 1);
        self.counters.add(Count::StaleOnError, 1);
    }
}
