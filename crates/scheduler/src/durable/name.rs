//! A pending job's name in memory: its key, or its id.

use std::hash::{Hash, Hasher};

use equivalent::Equivalent;

/// The name of a pending job. Of the jobs of one key, one has the key for its name. The others wait
/// under their ids: runs of periodic jobs, and failed runs whose key has a newer job.
#[derive(Debug, Clone)]
pub(crate) struct Name<K> {
    pub(super) key: K,
    /// The job's id, if it waits without its key; 0 if it has the key.
    id: u64,
}

impl<K> Name<K> {
    pub(super) fn keyed(key: K) -> Self {
        Self { key, id: 0 }
    }

    /// Ids are never 0: they begin where the journal's first opening does.
    pub(super) fn unkeyed(key: K, id: u64) -> Self {
        Self { key, id }
    }

    pub(super) fn is_unkeyed(&self) -> bool {
        self.id != 0
    }
}

impl<K: PartialEq> PartialEq for Name<K> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && (self.is_unkeyed() || self.key == other.key)
    }
}

impl<K: Eq> Eq for Name<K> {}

impl<K: Hash> Hash for Name<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.is_unkeyed() {
            self.id.hash(state);
        } else {
            self.key.hash(state);
        }
    }
}

/// A key as the name of its own job.
pub(super) struct Keyed<'a, Q: ?Sized>(pub(super) &'a Q);

impl<Q: Hash + ?Sized> Hash for Keyed<'_, Q> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<K, Q: Equivalent<K> + ?Sized> Equivalent<Name<K>> for Keyed<'_, Q> {
    fn equivalent(&self, name: &Name<K>) -> bool {
        !name.is_unkeyed() && self.0.equivalent(&name.key)
    }
}
