//! Remembers errors and absences for a while, so that no loader is called for them again.
//!
//! They live in a store of their own beside the shard's, made when the first one comes and let go
//! when the last one goes, so that a cache without them pays a word. Each shard remembers a number
//! of them ([`Builder::negative_capacity`](crate::Builder::negative_capacity)); the store's
//! eviction policy chooses which one makes room: to forget costs a call of a loader.
//!
//! Only [`Builder::negative_ttl`](crate::Builder::negative_ttl) and `error_ttl` name that store's
//! type. A program that remembers nothing does not contain it, which makes it a tenth smaller.

use std::any::Any;
use std::sync::Arc;

use tidewheel_store::{Attributes, Progress, Removed, TypedStore};
use tidewheel_time::Moment;

use super::effects::Garbage;
use super::flight::Negative;
use super::sight::is_over;
use crate::stats::Counters;

/// Errors and absences that one shard remembers unless told otherwise.
pub(crate) const NEGATIVES_PER_SHARD: u64 = 1024;

/// A store of errors and absences, behind a table of functions.
pub(crate) type NegativeMemory<K> = Box<dyn NegativeStore<K>>;

/// The errors and absences that one shard remembers.
pub(crate) struct Negatives<K>(Option<NegativeMemory<K>>);

/// One that was forgotten, to be dropped outside the lock.
pub(crate) type Forgotten<K> = Removed<K, Negative>;

impl Negative {
    pub(crate) fn error<E: Send + Sync + 'static>(error: &Arc<E>) -> Self {
        Self::Error(Arc::<E>::clone(error) as Arc<dyn Any + Send + Sync>)
    }

    /// The error, if it is an `E`.
    pub(crate) fn as_error<E: Send + Sync + 'static>(&self) -> Option<Arc<E>> {
        match self {
            Self::Absent => None,
            Self::Error(error) => Arc::clone(error).downcast().ok(),
        }
    }

    /// Returns whether this answers a caller whose loader fails with `E`; `absent` if an absence is
    /// an answer to it.
    pub(crate) fn answers<E: Send + Sync + 'static>(&self, absent: bool) -> bool {
        match self {
            Self::Absent => absent,
            Self::Error(error) => error.is::<E>(),
        }
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

    fn store(&self) -> Option<&TypedStore<K, Negative>> {
        self.0.as_ref().map(|memory| memory.store())
    }

    pub(crate) fn len(&self) -> u64 {
        self.store().map_or(0, |store| store.len() as u64)
    }

    #[inline]
    pub(crate) fn next_deadline(&self) -> u64 {
        let next = self.store().and_then(TypedStore::next_deadline);
        next.unwrap_or(u64::MAX)
    }

    /// Returns the error or absence that is remembered for a key, unless its time is over.
    pub(crate) fn find(
        &self,
        place: u32,
        is: impl Fn(&K) -> bool,
        now: Moment,
    ) -> Option<&Negative> {
        let store = self.store()?;
        let slot = store.find(place, is)?;
        let is_over = is_over(store.deadline(slot), now);
        (!is_over).then(|| store.value(slot))
    }

    /// What remembers; made by `new` if there is nothing yet.
    pub(crate) fn memory(&mut self, new: fn() -> NegativeMemory<K>) -> &mut NegativeMemory<K> {
        self.0.get_or_insert_with(new)
    }

    pub(crate) fn forget(&mut self, place: u32, is: impl Fn(&K) -> bool) -> Option<Forgotten<K>> {
        let removed = self.0.as_mut()?.forget(place, &is);
        self.let_go();
        removed
    }

    /// Forgets what is over; touches at most `budget` timer records, which it counts as moved.
    pub(crate) fn expire<V>(
        &mut self,
        now: u64,
        budget: u32,
        place_of: &impl Fn(&K) -> u32,
        garbage: &mut Garbage<K, V>,
    ) -> Progress {
        let Some(memory) = &mut self.0 else {
            return Progress::default();
        };
        let mut progress = memory.expire(now, budget, place_of, &mut |removed| {
            garbage.forgotten(Some(removed));
        });
        progress.moved += std::mem::take(&mut progress.fired);
        self.let_go();
        progress
    }

    /// Panics if the structure is broken, or there are more than `most`.
    pub(crate) fn validate(&self, most: u64, place_of: &impl Fn(&K) -> u32) {
        if let Some(store) = self.store() {
            store.validate(place_of);
            assert_ne!(store.len(), 0, "let go with the last one");
            assert!(self.len() <= most, "too many are remembered");
        }
    }

    /// Everything, if there is anything.
    pub(crate) fn take(&mut self) -> Option<NegativeMemory<K>> {
        self.0.take()
    }

    fn let_go(&mut self) {
        if self.store().is_some_and(TypedStore::is_empty) {
            self.0 = None;
        }
    }
}

/// See [`NegativeMemory`].
pub(crate) trait NegativeStore<K>: Send + Sync {
    fn store(&self) -> &TypedStore<K, Negative>;

    /// Remembers what a key of which nothing is remembered has come to; returns what has made room
    /// for it where there are more than `most`.
    fn remember(
        &mut self,
        place: u32,
        known: (K, Negative),
        deadline: u64,
        now: u64,
        most: u64,
        place_of: &dyn Fn(&K) -> u32,
    ) -> Option<Forgotten<K>>;

    fn forget(&mut self, place: u32, is: &dyn Fn(&K) -> bool) -> Option<Forgotten<K>>;

    fn expire(
        &mut self,
        now: u64,
        budget: u32,
        place_of: &dyn Fn(&K) -> u32,
        gone: &mut dyn FnMut(Forgotten<K>),
    ) -> Progress;

    /// Drops all, though some may panic.
    fn discard(self: Box<Self>, counters: &Counters);
}

/// An empty memory.
pub(crate) fn new_memory<K: Send + Sync + 'static>() -> NegativeMemory<K> {
    Box::new(TypedStore::new())
}

impl<K: Send + Sync> NegativeStore<K> for TypedStore<K, Negative> {
    fn store(&self) -> &Self {
        self
    }

    fn remember(
        &mut self,
        place: u32,
        (key, negative): (K, Negative),
        deadline: u64,
        now: u64,
        most: u64,
        place_of: &dyn Fn(&K) -> u32,
    ) -> Option<Forgotten<K>> {
        let attributes = Attributes {
            deadline: Some(deadline),
            ..Attributes::default()
        };
        self.insert(place, key, negative, attributes, now, most, &place_of);
        // Each weighs 1.
        (self.weight() > most)
            .then(|| self.evict(&place_of))
            .flatten()
    }

    fn forget(&mut self, place: u32, is: &dyn Fn(&K) -> bool) -> Option<Forgotten<K>> {
        let slot = self.find(place, is)?;
        Some(self.remove(slot, place))
    }

    fn expire(
        &mut self,
        now: u64,
        budget: u32,
        place_of: &dyn Fn(&K) -> u32,
        gone: &mut dyn FnMut(Forgotten<K>),
    ) -> Progress {
        self.expire(now, budget, &place_of, gone)
    }

    fn discard(self: Box<Self>, counters: &Counters) {
        let entries = self.into_entries();
        counters.discard_pairs(entries.map(|(key, value, _)| (key, value)));
    }
}
