//! What a job is filed under in memory: its key, or beside its key.

use std::hash::{Hash, Hasher};

use equivalent::Equivalent;

/// The name of a pending job. Of the jobs of one key, one has the key for its name. The others wait
/// beside it, under their ids: runs of periodic jobs, and failed runs whose key has a newer job.
#[derive(Debug, Clone)]
pub(crate) struct Name<K> {
    pub(super) key: K,
    /// The job's id, if it waits beside its key; 0 if it does not.
    beside: u64,
}

impl<K> Name<K> {
    pub(super) fn keyed(key: K) -> Self {
        Self { key, beside: 0 }
    }

    /// Ids are never 0: they begin where the journal's first opening does.
    pub(super) fn beside(key: K, id: u64) -> Self {
        Self { key, beside: id }
    }

    pub(super) fn is_beside(&self) -> bool {
        self.beside != 0
    }
}

impl<K: PartialEq> PartialEq for Name<K> {
    fn eq(&self, other: &Self) -> bool {
        self.beside == other.beside && (self.is_beside() || self.key == other.key)
    }
}

impl<K: Eq> Eq for Name<K> {}

impl<K: Hash> Hash for Name<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.is_beside() {
            self.beside.hash(state);
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
        !name.is_beside() && self.0.equivalent(&name.key)
    }
}
