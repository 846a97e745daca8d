//! Overwrites a value where nothing else is left to do: the shortest way to insert.

use std::hash::{BuildHasher, Hash};
use std::mem::needs_drop;

use tidewheel_store::Overwritten;

use crate::core::hash::Hashed;
use crate::core::inner::Inner;
use crate::core::shard::Shard;
use crate::stats::Count;

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Stores a value in the place of a live one, if neither of the two has more than its end, and
    /// nobody drops the old one or is told of it. Then nothing else is to be done. If it cannot,
    /// the value comes back, and whether it is known that nothing has the key and nothing is in the
    /// way of a new entry.
    #[inline(always)]
    pub(super) fn overwrite(
        &self,
        shard: &mut Shard<K, V>,
        hash: Hashed,
        key: &K,
        value: V,
        deadline: Option<u64>,
        tick: u64,
    ) -> Result<(), (V, bool)> {
        if needs_drop::<(K, V)>() || self.delivery.has_listener() {
            return Err((value, false));
        }
        let is_over = deadline.is_some_and(|deadline| deadline <= tick);
        if shard.closed || !shard.is_quiet() || is_over {
            return Err((value, false));
        }
        let until = tick + self.config.grace;
        let is = |stored: &K| stored == key;
        let store = &mut shard.store;
        match store.overwrite(hash.place(), is, value, deadline, until, tick) {
            Overwritten::Done => {}
            Overwritten::Nowhere(value) => return Err((value, true)),
            Overwritten::Not(value) => return Err((value, false)),
        }
        self.counters.add(Count::Insert, 1);
        shard.scheduled(deadline);
        Ok(())
    }
}
