//! The verbs on one key's time to live: read, set, take away, renew.

use std::hash::{BuildHasher, Hash};
use std::time::{Duration, SystemTime};

use equivalent::Equivalent;

use crate::cache::Cache;
use crate::inner::Inner;
use crate::lifetime::{Condition, Ttl};
use crate::removal::RemovalCause;
use crate::time::Nanos;

impl<K, V, S> Cache<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// How long a key has left.
    pub fn ttl<Q>(&self, key: &Q) -> Ttl
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let end = self.look(key, |shard, slot| self.inner.end_of(&shard.store, slot));
        match end {
            None => Ttl::Missing,
            Some(None) => Ttl::Forever,
            Some(Some(end)) => Ttl::Left(self.inner.until(end)),
        }
    }

    /// Gives a key another time to live, counted from now, if the condition holds; tells whether it did.
    /// A `ttl` of zero removes the key. Bounds and jitter do not apply.
    pub fn expire<Q>(&self, key: &Q, ttl: Duration, condition: Condition) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let now = self.inner.time.now();
        self.set_end(key, Some(now.deadline(ttl)), condition, now)
    }

    /// As [`expire`](Self::expire), with a point in wall time, converted once, now.
    pub fn expire_at<Q>(&self, key: &Q, at: SystemTime, condition: Condition) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let left = at
            .duration_since(self.inner.time.wall())
            .unwrap_or_default();
        self.expire(key, left, condition)
    }

    /// Takes a key's deadline away; tells whether it had one.
    pub fn persist<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let now = self.inner.time.now();
        self.set_end(key, None, Condition::IfSome, now)
    }

    fn set_end<Q>(&self, key: &Q, end: Option<u64>, condition: Condition, now: Nanos) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let inner = &*self.inner;
        let hash = inner.hash(key);
        inner.write_key(hash, key, |shard| {
            let Some(slot) = Inner::<K, V, S>::find(shard, hash, key) else {
                return false;
            };
            if !inner.is_live(&shard.store, slot) {
                return false;
            }
            let old = inner.end_of(&shard.store, slot);
            if !condition.allows(old, end.unwrap_or(u64::MAX)) {
                return false;
            }
            if end.is_some_and(|end| end <= now.tick()) {
                let mut removed = shard.store.remove(slot, hash.place());
                removed.deadline = end;
                inner.settle(shard);
                inner.left(shard, removed, RemovalCause::Expired, now.tick());
                return true;
            }
            let deadline = end.map(|end| end.saturating_add(inner.config.grace));
            // A deadline that is given is the entry's end: reads no longer move it beyond.
            shard.store.set_limit(slot, deadline);
            shard.set_deadline(slot, deadline, now.tick());
            true
        })
    }

    /// Counts as a use of a key, as a read does; tells whether it is there.
    pub fn touch<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get_with(key, |_| ()).is_some()
    }
}
