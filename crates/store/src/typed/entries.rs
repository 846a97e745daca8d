//! All entries of a store, by value.

use super::slots::IntoSlots;

/// All entries of a store, by value: key, value and deadline. Made by
/// [`TypedStore::into_entries`](super::TypedStore::into_entries).
#[derive(Debug)]
pub struct IntoEntries<K, V>(pub(super) IntoSlots<K, V>);

impl<K, V> Iterator for IntoEntries<K, V> {
    type Item = (K, V, Option<u64>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|entry| {
            let deadline = entry.deadline();
            (entry.key, entry.value, deadline)
        })
    }
}
