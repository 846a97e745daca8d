//! What a shard keeps under its lock to be dropped after it is released.

use std::mem::needs_drop;
use std::sync::Arc;

use tidewheel_store::Removed;

use super::emptied::Emptied;
use super::negative::{Forgotten, NegativeMemory};
use crate::stats::Counters;

/// Timer records that one hold of a shard's lock may touch. At most this many entries leave in one
/// hold.
pub(crate) const RECORDS_PER_HOLD: u32 = 16;

/// The keys and values to drop once the shard's lock is released. Most holds leave nothing: that
/// takes three tests.
pub(crate) struct Garbage<K, V> {
    one: Option<(K, V)>,
    /// The pairs after `one`.
    pairs: Vec<(K, V)>,
    /// Keys of loads that were superseded.
    pub(crate) keys: Vec<Arc<K>>,
    rare: Option<Box<Rare<K, V>>>,
}

/// Garbage that few holds leave.
pub(crate) struct Rare<K, V> {
    pub(crate) stores: Vec<Emptied<K, V>>,
    /// Forgotten errors and absences.
    negatives: Vec<Forgotten<K>>,
    /// All that a shard remembered.
    pub(crate) memories: Vec<NegativeMemory<K>>,
}

impl<K, V> Garbage<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            one: None,
            pairs: Vec::new(),
            keys: Vec::new(),
            rare: None,
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // What nobody drops is never kept.
        let has_pairs = needs_drop::<(K, V)>() && self.one.is_some();
        !has_pairs && self.keys.is_empty() && self.rare.is_none()
    }

    /// Everything, if there is anything.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Self> {
        if self.is_empty() {
            return None;
        }
        Some(std::mem::replace(self, Self::new()))
    }

    /// The entries of a shard that was just emptied, to be dropped by the caller.
    pub(crate) fn take_store(&mut self) -> Option<Emptied<K, V>> {
        self.rare.as_mut()?.stores.pop()
    }

    /// Entries that were taken out with their stores.
    pub(crate) fn stores(&self) -> &[Emptied<K, V>] {
        self.rare.as_ref().map_or(&[], |rare| &rare.stores)
    }

    #[cold]
    pub(crate) fn rare(&mut self) -> &mut Rare<K, V> {
        self.rare.get_or_insert_with(|| {
            Box::new(Rare {
                stores: Vec::new(),
                negatives: Vec::new(),
                memories: Vec::new(),
            })
        })
    }

    /// An error or absence was forgotten.
    #[inline]
    pub(crate) fn forgotten(&mut self, negative: Option<Forgotten<K>>) {
        if let Some(negative) = negative {
            self.rare().negatives.push(negative);
        }
    }

    /// Drops everything, outside all locks; the panics of what is dropped are counted and go no
    /// further.
    pub(crate) fn discard(self, counters: &Counters) {
        let Self {
            one,
            pairs,
            keys,
            rare,
        } = self;
        if let Some((key, value)) = one {
            counters.discard_pair(key, value);
        }
        if !pairs.is_empty() {
            counters.discard_pairs(pairs.into_iter());
        }
        for key in keys {
            counters.discard(key);
        }
        if let Some(rare) = rare {
            rare.discard(counters);
        }
    }

    /// The first pair needs no allocation; those after it need one for all that a hold of the
    /// driver brings. What nobody drops is not kept.
    #[inline]
    pub(crate) fn push(&mut self, key: K, value: V) {
        if !needs_drop::<(K, V)>() {
            return;
        }
        if self.one.is_none() {
            self.one = Some((key, value));
            return;
        }
        if self.pairs.len() == self.pairs.capacity() {
            self.make_room();
        }
        self.pairs.push((key, value));
    }

    #[cold]
    fn make_room(&mut self) {
        self.pairs.reserve(RECORDS_PER_HOLD as usize);
    }
}

impl<K, V> Rare<K, V> {
    #[cold]
    fn discard(self, counters: &Counters) {
        for entries in self.stores {
            entries.discard(counters);
        }
        let negatives = self.negatives.into_iter();
        counters.discard_pairs(negatives.map(|Removed { key, value, .. }| (key, value)));
        for memory in self.memories {
            memory.discard(counters);
        }
    }
}
