//! Prepares an entry: user code decides about it, before any lock is taken.

use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use tidewheel_store::Attributes;
use tidewheel_time::Moment;

use crate::core::inner::Inner;
use crate::lifetime::{Lifetime, TtlChoice};
use crate::shard::config::{Config, own_grace};
use crate::shard::hash::Hashed;
use crate::shard::write::Prepared;
use crate::time::Time;

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Everything about an entry that is about to be stored with
    /// [`Shard::put`](crate::shard::Shard::put): all user code that decides about it runs here,
    /// before the lock.
    #[inline(always)]
    pub(crate) fn prepare(
        &self,
        hash: Hashed,
        key: &K,
        value: &V,
        lifetime: &Lifetime,
    ) -> Prepared<'_> {
        self.prepare_at(hash, key, value, lifetime, || self.now())
    }

    /// As [`prepare`](Self::prepare), at a time that `clock` tells.
    #[inline(always)]
    pub(crate) fn prepare_at(
        &self,
        hash: Hashed,
        key: &K,
        value: &V,
        lifetime: &Lifetime,
        clock: impl FnOnce() -> Moment,
    ) -> Prepared<'_> {
        let config = &self.rules.config;
        let weight = config.weight(key, value);
        let now = clock();
        let old = config
            .wants_old(lifetime)
            .then(|| self.left_of(hash, key))
            .flatten();
        let ttl = config.default_ttl(key, value, old);
        let tags = self.rules.tags.hold(&lifetime.tags);
        let random = hash.0 ^ now.0.rotate_left(32);
        let attributes =
            config.attributes(lifetime, ttl, weight, tags.label(), &self.time, now, random);
        Prepared {
            attributes,
            tags,
            now,
            fits: self.fits(hash, key, weight),
        }
    }

    /// Returns the remaining time of a key's live entry; the inner `None` means that it has no end.
    fn left_of(&self, hash: Hashed, key: &K) -> Option<Option<Duration>> {
        let (shard, now) = self.read_now(self.cell(hash));
        let slot = shard.find_live(&self.rules, hash, key, now)?;
        Some(shard.end_of(&self.rules, slot).map(|end| now.until(end)))
    }

    /// Returns whether an entry may be stored under a key; makes way for a heavy one.
    pub(crate) fn fits(&self, hash: Hashed, key: &K, weight: u32) -> bool {
        weight <= 1 || self.make_way(hash, key, weight)
    }
}

impl<K, V> Config<K, V> {
    /// Everything about an entry that is stored now. `label` stands for its tags.
    #[allow(
        clippy::too_many_arguments,
        reason = "each is a different kind of fact, and there is one caller"
    )]
    #[inline(always)]
    fn attributes(
        &self,
        lifetime: &Lifetime,
        default_ttl: Option<Duration>,
        weight: u32,
        label: u64,
        time: &Time,
        now: Moment,
        random: u64,
    ) -> Attributes {
        let end = match &lifetime.ttl {
            TtlChoice::Configured => default_ttl.map(|ttl| self.end_of(ttl, now, random)),
            TtlChoice::For(ttl) => Some(self.end_of(*ttl, now, random)),
            TtlChoice::Never => None,
            TtlChoice::At(at) => {
                let left = at.duration_since(time.wall()).unwrap_or_default();
                Some(now.end(left))
            }
            TtlChoice::Since(begin, ttl) => Some(time.moment(*begin).min(now).end(*ttl)),
            TtlChoice::AtTick(tick) => Some(*tick),
        };
        let cap = self.cap(lifetime, now, random);
        let soft = self.soft(lifetime.fresh_for, end, now);
        let own_grace = own_grace(lifetime.stale_for);
        let grace = self.grace(own_grace);
        let idle_end = self.time_to_idle.map(|idle| now.end(idle));
        let (deadline, limit) = match (end, idle_end) {
            (Some(end), Some(idle_end)) => (Some(end.min(idle_end)), Some(end)),
            (end, idle_end) => (end.or(idle_end), None),
        };
        Attributes {
            deadline: deadline.map(|deadline| deadline.saturating_add(grace)),
            weight,
            soft,
            label,
            limit: limit.map(|limit| limit.saturating_add(grace)),
            notes: self.stated(lifetime, cap).notes(),
            grace: own_grace,
        }
    }
}
