//! Reads, sets, removes and renews one key's time to live.

use std::hash::{BuildHasher, Hash};
use std::time::{Duration, SystemTime};

use equivalent::Equivalent;

use super::cache::Cache;
use crate::lifetime::{Condition, Ttl};
use crate::removal::RemovalCause;
use crate::shard::Shard;
use crate::shard::ends::StatedTtl;
use tidewheel_time::{Moment, ticks};

/// # Time to live
impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Returns the time that a key has left. An end is a whole millisecond, rounded up: what is
    /// left of a second may be up to 1.001 s.
    #[doc(alias = "getExpiresAfter")]
    pub fn ttl<Q>(&self, key: &Q) -> Ttl
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let end = self.look(key, |shard, slot| shard.end_of(slot));
        match end {
            None => Ttl::Missing,
            Some(None) => Ttl::Forever,
            Some(Some(end)) => Ttl::Left(self.inner.until(end)),
        }
    }

    /// Gives a key another time to live, counted from now, if the condition holds; tells whether it
    /// did. A `ttl` of zero removes the key at once, and the listener gets it as
    /// [`RemovalCause::Expired`]: its time is over. Bounds and jitter do not apply. Nor do the
    /// [idle time](crate::Builder::time_to_idle) and an [`Expiry`](crate::Expiry) any more, until
    /// the key is stored again: the entry lives so long, read or not.
    ///
    /// A soft deadline that follows from [`Builder::refresh_after`](crate::Builder::refresh_after)
    /// is then that fraction of the new time to live, counted from now too; one that was said with
    /// [`Lifetime::fresh_for`](crate::Lifetime::fresh_for) stays. Where the condition does not hold
    /// nothing happens at all: a load in progress goes on, and what is remembered of the key stays
    /// so.
    #[doc(alias = "setExpiresAfter")]
    pub fn expire<Q>(&self, key: &Q, ttl: Duration, condition: Condition) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.set_end(key, Some(ttl), condition, || StatedTtl::For(ticks(ttl)))
    }

    /// As [`expire`](Self::expire), with a point in wall time, converted once, now. One that is
    /// over is a `ttl` of zero.
    pub fn expire_at<Q>(&self, key: &Q, at: SystemTime, condition: Condition) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let left = at
            .duration_since(self.inner.time.wall())
            .unwrap_or_default();
        self.set_end(key, Some(left), condition, || StatedTtl::Point)
    }

    /// Takes a key's deadline away; tells whether it had one. With it go the [idle
    /// time](crate::Builder::time_to_idle) and an [`Expiry`](crate::Expiry), until the key is
    /// stored again. A soft deadline that follows from
    /// [`Builder::refresh_after`](crate::Builder::refresh_after) goes with it; one that was said
    /// with [`Lifetime::fresh_for`](crate::Lifetime::fresh_for) stays.
    pub fn persist<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.set_end(key, None, Condition::IfSome, || StatedTtl::Never)
    }

    fn set_end<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        key: &Q,
        ttl: Option<Duration>,
        condition: Condition,
        stated: impl FnOnce() -> StatedTtl,
    ) -> bool {
        let inner = &*self.inner;
        let hash = inner.hash(key);
        let rules = &inner.rules;
        let end_of = |now: Moment| ttl.map(|ttl| now.end(ttl));
        let concerned = |shard: &Shard<K, V, S>, now| {
            let slot = shard.find_live(hash, key, now)?;
            let old = shard.end_of(slot);
            let end = end_of(now).unwrap_or(u64::MAX);
            condition.allows(old, end).then_some(slot)
        };
        let changed = inner.change_key(hash, key, concerned, |shard, slot, now| {
            let end = end_of(now);
            if end.is_some_and(|end| end <= now.tick()) {
                let mut removed = shard.store.remove(slot, hash.place());
                removed.deadline = end;
                shard.give_back();
                let cause = RemovalCause::Expired;
                shard.effects.removed(rules, removed, cause, now.tick());
                return;
            }
            let grace = shard.grace_of(slot);
            let deadline = end.map(|end| end.saturating_add(grace));
            if rules.config.time_to_idle.is_some() {
                // A deadline that is given is the entry's end: reads no longer move it beyond.
                shard.store.set_limit(slot, deadline);
            }
            shard.set_deadline(slot, deadline, now.tick());
            shard.rebase(slot, stated, end, now);
        });
        changed.is_some()
    }

    /// Counts as a use of a key, as a read does; tells whether it is there.
    pub fn touch<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.view(key, |_| ()).is_some()
    }
}
