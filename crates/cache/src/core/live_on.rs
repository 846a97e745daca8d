//! Gives an entry whose value has not changed a new lifetime, in place.

use std::hash::{BuildHasher, Hash};

use crate::core::hash::Hashed;
use crate::core::inner::Inner;
use crate::core::insert::Prepared;
use crate::core::shard::Shard;

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Gives an entry, dead or alive, the lifetime of a prepared one that has the same value. It is
    /// no other entry: nobody hears of it. If there is none, or the time of the new one is over at
    /// once, the value is stored as any other.
    #[cold]
    pub(crate) fn live_on(
        &self,
        shard: &mut Shard<K, V>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> bool {
        let slot = Self::find(shard, hash, &key).filter(|slot| self.is_kept(&shard.store, *slot));
        let Some(slot) = slot.filter(|_| self.admits(shard, prepared)) else {
            return self.put(shard, hash, key, value, prepared);
        };
        let label = shard.store.label_of(slot);
        let attributes = prepared.attributes;
        shard.store.renew(slot, attributes, prepared.now.tick());
        prepared.tags.pass_on();
        self.tags.release(label);
        shard.scheduled(attributes.deadline);
        shard.garbage.push(key, value);
        true
    }

    /// Returns whether a prepared entry stays once it is stored. It has room already, whatever it
    /// weighs.
    fn admits(&self, shard: &Shard<K, V>, prepared: &Prepared<'_>) -> bool {
        let is_current = self.tags.is_current(prepared.attributes.label);
        !shard.closed && !prepared.is_over() && is_current
    }
}
