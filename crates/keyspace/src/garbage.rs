//! Garbage: values and stores that left the keyspace, and are too large to be dropped while clients
//! wait.

use crate::value::{Entries, Object};

/// Values and stores to be dropped; dropping it frees them.
#[derive(Debug, Default)]
pub struct Garbage {
    objects: Vec<Object>,
    stores: Vec<Entries>,
    bytes: usize,
}

impl Garbage {
    pub(crate) fn objects(objects: Vec<Object>) -> Self {
        let bytes = objects.iter().map(Object::bytes).sum();
        Self {
            objects,
            stores: Vec::new(),
            bytes,
        }
    }

    pub(crate) fn add_store(&mut self, store: Entries, bytes: usize) {
        self.stores.push(store);
        self.bytes += bytes;
    }

    /// Bytes that dropping it frees, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Values and whole stores in it.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.objects.len() + self.stores.len()
    }
}
