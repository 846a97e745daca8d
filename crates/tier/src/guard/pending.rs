//! Invalidations that an absent engine has not taken.
//!
//! They alone are tried again: to invalidate twice does no harm. A write that is tried again later might replace a newer one.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most that wait. One more, and the whole namespace is to be invalidated instead.
const LIMIT: usize = 10_000;

/// What is to be invalidated when the engine is back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invalidation {
    Key(Vec<u8>),
    /// The empty tag is the whole namespace.
    Tag(String),
}

/// Invalidations that wait.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    any: AtomicBool,
    waiting: Mutex<BTreeSet<Invalidation>>,
}

impl Pending {
    /// Whether any wait: one load.
    pub(crate) fn any(&self) -> bool {
        self.any.load(SeqCst)
    }

    pub(crate) fn add(&self, invalidation: Invalidation) {
        let mut waiting = self.lock();
        if waiting.len() >= LIMIT {
            waiting.clear();
            waiting.insert(Invalidation::Tag(String::new()));
        } else {
            waiting.insert(invalidation);
        }
        self.any.store(true, SeqCst);
    }

    /// One that waits. It stays until [`done`](Self::done).
    pub(crate) fn first(&self) -> Option<Invalidation> {
        self.lock().first().cloned()
    }

    pub(crate) fn done(&self, invalidation: &Invalidation) {
        let mut waiting = self.lock();
        waiting.remove(invalidation);
        self.any.store(!waiting.is_empty(), SeqCst);
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Invalidation>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_become_one_of_everything() {
        let pending = Pending::default();
        for key in 0..=LIMIT {
            pending.add(Invalidation::Key(key.to_be_bytes().to_vec()));
        }
        let all = Invalidation::Tag(String::new());
        assert_eq!((pending.len(), pending.first()), (1, Some(all.clone())));
        pending.done(&all);
        assert!(!pending.any());
    }
}
