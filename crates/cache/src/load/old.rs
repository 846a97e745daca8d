//! What a loader may know of the value that it is to replace, and how a load ends that has asked
//! for it.

use std::hash::{BuildHasher, Hash};
use std::panic::resume_unwind;
use std::sync::Arc;

use super::lead::Lead;
use super::{Found, Said};
use crate::core::fresh::Heritage;
use crate::core::inner::Inner;

/// The old value of a key that is being loaded, and what it leaves to one that is the same.
pub(super) struct Old<'a, K, V, S> {
    value: V,
    heritage: Heritage<'a, K, V, S>,
}

impl<'a, K, V, S> Old<'a, K, V, S> {
    pub(super) fn parts(self) -> (Option<V>, Option<Heritage<'a, K, V, S>>) {
        (Some(self.value), Some(self.heritage))
    }
}

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Inner<K, V, S> {
    /// The old value for one who leads a load: past its soft deadline, or past its end and still
    /// kept.
    pub(super) fn old_of<'a>(&'a self, lead: &Lead<'a, K, V, S>) -> Option<Old<'a, K, V, S>> {
        let key = lead.key.as_deref()?;
        let hash = lead.hash;
        let shard = self.read(self.cell(hash));
        let slot = Self::find(&shard, hash, key)?;
        if !self.is_kept(&shard.store, slot) {
            return None;
        }
        let heritage = Heritage::of(self, &shard.store, slot);
        let value = shard.store.value(slot).clone();
        Some(Old { value, heritage })
    }
}

/// Ends a load with what its loader has said, or with its panic. The lead is handed over before the
/// panic goes on: the next leader need not wait for the unwinding.
pub(super) fn end_load<K, V, S, E>(
    lead: Lead<'_, K, V, S>,
    said: std::thread::Result<Said<V, E>>,
    heritage: Option<Heritage<'_, K, V, S>>,
) -> Found<V, E>
where
    K: Hash + Eq,
    V: Clone,
    S: BuildHasher,
    E: Send + Sync + 'static,
{
    match said {
        Ok(said) => lead.finish_with(said.map_err(Arc::new), heritage.as_ref()),
        Err(panic) => {
            lead.give_up();
            resume_unwind(panic)
        }
    }
}
