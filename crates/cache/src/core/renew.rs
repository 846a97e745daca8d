//! Renews an entry's end at each use: the idle time begins again, and at a read `Expiry` may decide
//! another end, unless the caller stated one.
//!
//! An entry's *end* is the time from which readers no longer see it. The store's *deadline* and
//! *limit* are later than it by the grace period, for which an old value is kept.

use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;
use tidewheel_store::{Attributes, Slot};
use tidewheel_time::Moment;

use crate::core::config::{Config, earlier};
use crate::core::fresh::StatedLifetime;
use crate::core::hash::Hashed;
use crate::core::hooks::UseHook;
use crate::core::inner::Inner;
use crate::core::shard::Shard;

/// The change of an entry's end that a read has decided.
#[derive(Clone, Copy)]
pub(crate) struct Renewal {
    deadline: Option<u64>,
    /// The new limit beyond which idle time cannot move the deadline: `None` leaves it as it is,
    /// `Some(None)` lifts it.
    limit: Option<Option<u64>>,
    /// The shard's count of changes when this was decided.
    changes: u64,
}

impl<K: Hash + Eq, V, S: BuildHasher> UseHook<K, V, S> {
    /// The hook of a cache that has an idle time, or an `Expiry`.
    pub(crate) fn new() -> Self {
        Self {
            slide: Inner::slide,
            renew: Inner::set_renewal,
        }
    }
}

impl<K, V, S> Inner<K, V, S> {
    /// A live entry was read: slides its deadline. Returns what to set when that takes the writer's
    /// lock.
    #[inline]
    pub(crate) fn used(&self, shard: &Shard<K, V>, slot: Slot) -> Option<Renewal> {
        let hook = self.hooks.on_use.as_ref()?;
        (hook.slide)(self, shard, slot)
    }

    /// Gives an entry the end that its use has decided.
    #[cold]
    pub(crate) fn renew<Q: Equivalent<K> + ?Sized>(&self, hash: Hashed, key: &Q, renewal: Renewal) {
        if let Some(hook) = &self.hooks.on_use {
            (hook.renew)(self, hash, &|stored| key.equivalent(stored), renewal);
        }
    }
}

impl<K, V, S> Inner<K, V, S>
where
    K: Hash + Eq,
    S: BuildHasher,
{
    fn slide(&self, shard: &Shard<K, V>, slot: Slot) -> Option<Renewal> {
        let store = &shard.store;
        let grace = self.grace_of(store, slot);
        let expiry = self.config.expiry.as_ref();
        let stated = expiry.map(|expiry| (expiry, StatedLifetime::from_notes(store.notes(slot))));
        if let Some((expiry, stated)) = stated.filter(|(_, stated)| !stated.is_given()) {
            let now = self.time.now();
            let deadline = store.deadline(slot);
            // With an idle time as well, the deadline may be that one's, and the limit is the
            // lifetime's.
            let hard = match self.config.time_to_idle {
                Some(_) => store.attributes(slot).limit,
                None => deadline,
            };
            let left = hard.map(|hard| now.until(hard.saturating_sub(grace)));
            let next = expiry.expire_after_read(store.key(slot), store.value(slot), left);
            if next != left {
                let next = earlier(next.map(|ttl| now.end(ttl)), stated.cap());
                let hard = next.map(|end| end.saturating_add(grace));
                return Some(match self.config.time_to_idle {
                    Some(idle) => {
                        let idle = now.end(idle).saturating_add(grace);
                        Renewal {
                            deadline: Some(hard.map_or(idle, |hard| hard.min(idle))),
                            limit: Some(hard),
                            changes: shard.changes,
                        }
                    }
                    None if hard == deadline => return None,
                    None => Renewal {
                        deadline: hard,
                        limit: None,
                        changes: shard.changes,
                    },
                });
            }
        }
        let idle = self.config.time_to_idle?;
        let deadline = store.deadline(slot)?;
        let next = self.time.now().end(idle).saturating_add(grace);
        let next = match store.attributes(slot).limit {
            Some(limit) => next.min(limit),
            None => next,
        };
        (next > deadline && !store.slide(slot, next)).then_some(Renewal {
            deadline: Some(next),
            limit: None,
            changes: shard.changes,
        })
    }

    fn set_renewal(&self, hash: Hashed, is: &dyn Fn(&K) -> bool, renewal: Renewal) {
        let now = self.time.now().tick();
        self.write(self.cell(hash), |shard| {
            let slot = shard.store.find(hash.place(), is);
            if let Some(slot) = slot.filter(|slot| self.is_live(&shard.store, *slot)) {
                // This write has counted itself: exactly one more change means that no other writer
                // came between. Otherwise this may be another value, and is asked again.
                let renewal = if shard.changes == renewal.changes.wrapping_add(1) {
                    renewal
                } else {
                    match self.slide(shard, slot) {
                        Some(renewal) => renewal,
                        None => return,
                    }
                };
                if let Some(limit) = renewal.limit {
                    shard.store.set_limit(slot, limit);
                }
                shard.set_deadline(slot, renewal.deadline, now);
            }
        });
    }
}

impl<K, V> Config<K, V> {
    /// The attributes of an entry that gets another value and keeps its lifetime. That is a use of
    /// it: the idle time begins again.
    pub(crate) fn attributes_after_overwrite(&self, entry: Attributes, now: Moment) -> Attributes {
        let Some((idle, deadline)) = self.time_to_idle.zip(entry.deadline) else {
            return entry;
        };
        let slid = now.end(idle).saturating_add(self.grace(entry.grace));
        let slid = entry.limit.map_or(slid, |limit| slid.min(limit));
        Attributes {
            deadline: Some(deadline.max(slid)),
            ..entry
        }
    }
}
