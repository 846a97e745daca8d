//! The entries of a shard that was emptied in one step.
//!
//! They are behind a table of functions, so that callers that may drop them do not contain the code
//! for it.

use std::mem::needs_drop;

use tidewheel_store::{IntoEntries, TypedStore};

use crate::stats::Counters;

/// All entries of a shard that was emptied.
pub(crate) type Emptied<K, V> = Box<dyn Entries<K, V>>;

/// Makes them of the store that was taken out.
pub(crate) type NewEmptied<K, V> = fn(TypedStore<K, V>) -> Emptied<K, V>;

/// Entries that are taken one by one.
pub(crate) trait Entries<K, V>: Send + Sync {
    /// Visits the labels of all, before the first is taken.
    fn each_label(&self, visit: &mut dyn FnMut(u64));

    fn next(&mut self) -> Option<(K, V)>;

    /// Drops all, though some may panic.
    fn discard(self: Box<Self>, counters: &Counters);
}

struct EmptiedStore<K, V> {
    store: TypedStore<K, V>,
    /// The entries that are left, once the first was taken.
    left: Option<IntoEntries<K, V>>,
}

/// The entries of a store.
pub(crate) fn emptied<K, V>(store: TypedStore<K, V>) -> Emptied<K, V>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    Box::new(EmptiedStore { store, left: None })
}

impl<K: Send + Sync, V: Send + Sync> Entries<K, V> for EmptiedStore<K, V> {
    fn each_label(&self, visit: &mut dyn FnMut(u64)) {
        self.store.labels().for_each(visit);
    }

    fn next(&mut self) -> Option<(K, V)> {
        let store = &mut self.store;
        let left = self
            .left
            .get_or_insert_with(|| std::mem::take(store).into_entries());
        left.next().map(|(key, value, _)| (key, value))
    }

    fn discard(mut self: Box<Self>, counters: &Counters) {
        if needs_drop::<(K, V)>() {
            counters.discard_pairs(std::iter::from_fn(|| self.next()));
        }
    }
}
