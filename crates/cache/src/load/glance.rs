//! What a caller of a load finds without one: a value, or an error or absence that is remembered.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use super::Answer;
use super::settle::AfterRead;
use crate::core::flight::Negative;
use crate::core::hash::Hashed;
use crate::core::inner::Inner;
use crate::stats::Count;

impl Negative {
    /// Whether this answers a caller whose loader fails with `E`.
    pub(super) fn answers<E: Send + Sync + 'static>(&self, absent: bool) -> bool {
        match self {
            Self::Absent => absent,
            Self::Error(_) => self.is_error::<E>(),
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Looks for an answer under the reader lock. Counts the lookup if it is the first one.
    pub(super) fn glance<E>(
        &self,
        hash: Hashed,
        key: &K,
        absent: bool,
        first: bool,
    ) -> Option<Answer<V, E>>
    where
        V: Clone,
        E: Send + Sync + 'static,
    {
        let (mut renewal, mut refresh) = (None, None);
        let mut stale = false;
        let mut remembered = None;
        let found = {
            let shard = self.read(self.cell(hash));
            match Self::find(&shard, hash, key) {
                Some(slot) if self.is_live(&shard.store, slot) => {
                    let mut serve = true;
                    if self.is_stale(&shard.store, slot) {
                        refresh = self.refresh_wanted(&shard, hash, slot);
                        serve = self.config.refresher.is_some()
                            || self.is_being_loaded(&shard, hash, key);
                        stale = serve;
                    }
                    if serve {
                        shard.store.hit(slot);
                        renewal = self.used(&shard, slot);
                    }
                    serve.then(|| shard.store.value(slot).clone())
                }
                _ => {
                    remembered = shard
                        .negatives
                        .find(hash.place(), |stored| stored == key, &self.time)
                        .filter(|negative| negative.answers::<E>(absent))
                        .cloned();
                    None
                }
            }
        };
        let after = AfterRead {
            renewal,
            stale,
            refresh,
            lookup: first.then_some(found.is_some()),
        };
        self.settle(hash, key, after);
        match (found, remembered) {
            (Some(value), _) => Some(Ok(Some(value))),
            (None, Some(negative)) => {
                self.counters.add(Count::NegativeHit, 1);
                self.negative_answer(hash, key, &negative)
            }
            (None, None) => None,
        }
    }

    /// An error or absence as an answer; in place of an error the old value, if it may still be served.
    pub(super) fn negative_answer<E>(
        &self,
        hash: Hashed,
        key: &K,
        negative: &Negative,
    ) -> Option<Answer<V, E>>
    where
        V: Clone,
        E: Send + Sync + 'static,
    {
        match negative {
            Negative::Absent => Some(Ok(None)),
            Negative::Error(error) => {
                let error = Arc::clone(error).downcast::<E>().ok()?;
                Some(self.old_value(hash, key).map(Some).ok_or(error))
            }
        }
    }

    /// The old value for the case that a loader has failed, until its hard deadline.
    pub(super) fn old_value(&self, hash: Hashed, key: &K) -> Option<V>
    where
        V: Clone,
    {
        let old = {
            let shard = self.read(self.cell(hash));
            let store = &shard.store;
            let slot = Self::find(&shard, hash, key)?;
            let over = store
                .deadline(slot)
                .is_some_and(|deadline| self.time.reached(deadline));
            if over || !self.tags.is_current(store.label_of(slot)) {
                return None;
            }
            store.value(slot).clone()
        };
        self.counters.add(Count::Stale, 1);
        Some(old)
    }
}
