//! Errors and absences that are remembered for a while, so that no loader is called for them again.
//!
//! They live in a store of their own beside the shard's, made when the first one comes and let go when the
//! last one goes, so that a cache without them pays a word. At most [`NEGATIVES_PER_SHARD`] are remembered in
//! each shard; the store's eviction policy chooses which one makes room: to forget costs a call of a loader.

use std::any::Any;
use std::sync::Arc;

use tidewheel_store::{Attributes, Progress, Removed, TypedStore};

use crate::core::flight::Negative;
use crate::core::removal::Garbage;
use crate::time::Time;

/// Errors and absences that one shard remembers.
pub(crate) const NEGATIVES_PER_SHARD: u64 = 1024;

/// What one shard remembers.
#[derive(Debug)]
pub(crate) struct Negatives<K>(Option<Box<TypedStore<K, Negative>>>);

impl Negative {
    pub(crate) fn error<E: Send + Sync + 'static>(error: &Arc<E>) -> Self {
        Self::Error(Arc::<E>::clone(error) as Arc<dyn Any + Send + Sync>)
    }

    /// Whether this answers a caller whose loader fails with `E`.
    pub(crate) fn is_error<E: Send + Sync + 'static>(&self) -> bool {
        matches!(self, Self::Error(error) if error.is::<E>())
    }
}

impl<K> Negatives<K> {
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    #[inline]
    pub(crate) fn next_deadline(&self) -> u64 {
        match &self.0 {
            None => u64::MAX,
            Some(store) => store.next_deadline().unwrap_or(u64::MAX),
        }
    }

    /// What is remembered of a key and not over.
    pub(crate) fn find(
        &self,
        place: u32,
        is: impl Fn(&K) -> bool,
        time: &Time,
    ) -> Option<&Negative> {
        let store = self.0.as_ref()?;
        let slot = store.find(place, is)?;
        let live = store
            .deadline(slot)
            .is_some_and(|deadline| !time.reached(deadline));
        live.then(|| store.value(slot))
    }

    /// Remembers what a key of which nothing is remembered has come to; returns what has made room for it.
    pub(crate) fn remember(
        &mut self,
        place: u32,
        key: K,
        negative: Negative,
        deadline: u64,
        now: u64,
        place_of: &impl Fn(&K) -> u32,
    ) -> Option<Removed<K, Negative>> {
        let store = self.0.get_or_insert_default();
        let attributes = Attributes {
            deadline: Some(deadline),
            ..Attributes::default()
        };
        store.insert(
            place,
            key,
            negative,
            attributes,
            now,
            NEGATIVES_PER_SHARD,
            place_of,
        );
        // Each weighs 1.
        (store.weight() > NEGATIVES_PER_SHARD)
            .then(|| store.evict(place_of))
            .flatten()
    }

    pub(crate) fn forget(
        &mut self,
        place: u32,
        is: impl Fn(&K) -> bool,
    ) -> Option<Removed<K, Negative>> {
        let store = self.0.as_mut()?;
        let slot = store.find(place, is)?;
        let removed = store.remove(slot, place);
        self.let_go();
        Some(removed)
    }

    /// Forgets what is over; touches at most `budget` timer records, which it counts as moved.
    pub(crate) fn expire<V>(
        &mut self,
        now: u64,
        budget: u32,
        place_of: &impl Fn(&K) -> u32,
        garbage: &mut Garbage<K, V>,
    ) -> Progress {
        let Some(store) = &mut self.0 else {
            return Progress::default();
        };
        let mut progress = store.expire(now, budget, place_of, |removed| {
            garbage.forgotten(Some(removed));
        });
        progress.moved += std::mem::take(&mut progress.fired);
        self.let_go();
        progress
    }

    /// Panics if the structure is broken, or there are too many.
    pub(crate) fn validate(&self, place_of: &impl Fn(&K) -> u32) {
        if let Some(store) = &self.0 {
            store.validate(place_of);
            assert!(!store.is_empty() && store.len() as u64 <= NEGATIVES_PER_SHARD);
        }
    }

    pub(crate) fn clear(&mut self) -> Option<TypedStore<K, Negative>> {
        self.0.take().map(|store| *store)
    }

    fn let_go(&mut self) {
        if self.0.as_ref().is_some_and(|store| store.is_empty()) {
            self.0 = None;
        }
    }
}
