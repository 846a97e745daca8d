//! Renews an entry's end at each use: the idle time begins again, and at a read `Expiry` may decide
//! another end, unless the caller stated one.
//!
//! An entry's *end* is the time from which readers no longer see it. The store's *deadline* and
//! *limit* are later than it by the grace period, for which an old value is kept.

use tidewheel_store::{Attributes, Slot};
use tidewheel_time::Moment;

use super::Shard;
use super::config::{Config, earlier};
use super::fresh::StatedLifetime;
use super::rules::{Hashed, Rules};

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

impl<K, V> Shard<K, V> {
    /// A live entry was read: slides its deadline. Returns what to set when that takes the writer's
    /// lock.
    pub(crate) fn slide<S>(
        &self,
        rules: &Rules<K, V, S>,
        slot: Slot,
        now: Moment,
    ) -> Option<Renewal> {
        let store = &self.store;
        let config = &rules.config;
        let grace = self.grace_of(rules, slot);
        let expiry = config.expiry.as_ref();
        let stated = expiry.map(|expiry| (expiry, StatedLifetime::from_notes(store.notes(slot))));
        if let Some((expiry, stated)) = stated.filter(|(_, stated)| !stated.is_given()) {
            let deadline = store.deadline(slot);
            // With an idle time as well, the deadline may be that one's, and the limit is the
            // lifetime's.
            let hard = match config.time_to_idle {
                Some(_) => store.attributes(slot).limit,
                None => deadline,
            };
            let left = hard.map(|hard| now.until(hard.saturating_sub(grace)));
            let next = expiry.expire_after_read(store.key(slot), store.value(slot), left);
            if next != left {
                let next = earlier(next.map(|ttl| now.end(ttl)), stated.cap());
                let hard = next.map(|end| end.saturating_add(grace));
                return Some(match config.time_to_idle {
                    Some(idle) => {
                        let idle = now.end(idle).saturating_add(grace);
                        Renewal {
                            deadline: Some(hard.map_or(idle, |hard| hard.min(idle))),
                            limit: Some(hard),
                            changes: self.changes,
                        }
                    }
                    None if hard == deadline => return None,
                    None => Renewal {
                        deadline: hard,
                        limit: None,
                        changes: self.changes,
                    },
                });
            }
        }
        let idle = config.time_to_idle?;
        let deadline = store.deadline(slot)?;
        let next = now.end(idle).saturating_add(grace);
        let next = match store.attributes(slot).limit {
            Some(limit) => next.min(limit),
            None => next,
        };
        (next > deadline && !store.slide(slot, next)).then_some(Renewal {
            deadline: Some(next),
            limit: None,
            changes: self.changes,
        })
    }

    /// Gives an entry the end that its use has decided.
    pub(crate) fn renew<S>(
        &mut self,
        rules: &Rules<K, V, S>,
        hash: Hashed,
        is: &dyn Fn(&K) -> bool,
        renewal: Renewal,
        now: Moment,
    ) {
        let slot = self.store.find(hash.place(), is);
        let Some(slot) = slot.filter(|slot| self.is_live(rules, *slot, now)) else {
            return;
        };
        // This write has counted itself: exactly one more change means that no other writer came
        // between. Otherwise this may be another value, and is asked again.
        let renewal = if self.changes == renewal.changes.wrapping_add(1) {
            renewal
        } else {
            match self.slide(rules, slot, now) {
                Some(renewal) => renewal,
                None => return,
            }
        };
        if let Some(limit) = renewal.limit {
            self.store.set_limit(slot, limit);
        }
        self.set_deadline(slot, renewal.deadline, now.tick());
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
