//! Carries out what a read has decided of its entry's end.

use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;
use tidewheel_store::Slot;
use tidewheel_time::Moment;

use crate::core::hooks::UseHook;
use crate::core::inner::Inner;
use crate::shard::Shard;
use crate::shard::hash::Hashed;
use crate::shard::renew::Renewal;

impl<K: Hash + Eq, V, S: BuildHasher> UseHook<K, V, S> {
    /// The hook of a cache that has an idle time, or an `Expiry`.
    pub(crate) fn new() -> Self {
        Self {
            slide: Shard::slide,
            renew: |inner, hash, is, renewal| {
                inner.change(inner.cell(hash), |shard, now| {
                    shard.renew(&inner.rules, hash, is, renewal, now);
                });
            },
        }
    }
}

impl<K, V, S> Inner<K, V, S> {
    /// A live entry was read: slides its deadline. Returns what to set when that takes the writer's
    /// lock.
    #[inline]
    pub(crate) fn used(&self, shard: &Shard<K, V>, slot: Slot, now: Moment) -> Option<Renewal> {
        let hook = self.hooks.on_use.as_ref()?;
        (hook.slide)(shard, &self.rules, slot, now)
    }

    /// Gives an entry the end that its use has decided.
    #[cold]
    pub(crate) fn renew<Q: Equivalent<K> + ?Sized>(&self, hash: Hashed, key: &Q, renewal: Renewal) {
        if let Some(hook) = &self.hooks.on_use {
            (hook.renew)(self, hash, &|stored| key.equivalent(stored), renewal);
        }
    }
}
