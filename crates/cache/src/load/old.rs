//! Gives a loader the old value that it is to replace, and ends its load.

use std::hash::{BuildHasher, Hash};
use std::panic::resume_unwind;
use std::sync::Arc;

use super::lead::Lead;
use super::{Found, LoaderAnswer};
use crate::core::inner::Inner;
use crate::shard::fresh::Inherited;

/// The old value of a key that is being loaded, and what it leaves to one that is the same.
pub(super) struct Old<'a, K, V, S> {
    value: V,
    inherited: Inherited<'a, K, V, S>,
}

impl<'a, K, V, S> Old<'a, K, V, S> {
    pub(super) fn parts(self) -> (Option<V>, Option<Inherited<'a, K, V, S>>) {
        (Some(self.value), Some(self.inherited))
    }
}

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Inner<K, V, S> {
    /// The old value for one who leads a load: past its soft deadline, or past its end and still
    /// kept.
    pub(super) fn old_of<'a>(&'a self, lead: &Lead<'a, K, V, S>) -> Option<Old<'a, K, V, S>> {
        let key = lead.key.as_deref()?;
        let hash = lead.hash;
        let (shard, now) = self.read_now(self.cell(hash));
        let slot = shard.find(hash, key)?;
        if !shard.is_kept(&self.rules, slot, now) {
            return None;
        }
        let inherited = Inherited::of(&self.rules, &shard, slot);
        let value = shard.store.value(slot).clone();
        Some(Old { value, inherited })
    }
}

/// Ends a load with what its loader has answered, or with its panic. The lead is handed over before
/// the panic goes on: the next leader need not wait for the unwinding.
pub(super) fn end_load<K, V, S, E>(
    lead: Lead<'_, K, V, S>,
    answer: std::thread::Result<LoaderAnswer<V, E>>,
    inherited: Option<Inherited<'_, K, V, S>>,
) -> Found<V, E>
where
    K: Hash + Eq,
    V: Clone,
    S: BuildHasher,
    E: Send + Sync + 'static,
{
    match answer {
        Ok(answer) => lead.finish_with(answer.map_err(Arc::new), inherited.as_ref()),
        Err(panic) => {
            lead.give_up();
            resume_unwind(panic)
        }
    }
}
