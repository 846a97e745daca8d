//! The ends of an entry: the soft deadline, past which it is loaded again; the end, from which
//! readers no longer see it; and what of them its next value inherits.
//!
//! A *soft deadline* is a point in time of the value: so long after it was stored. It follows from
//! `refresh_after`, as a share of the time to live, or was stated for the entry. No read moves it,
//! and no idle time has a part in it; a new time to live has a new share.
//!
//! An entry's *end* is the time from which readers no longer see it. The store's *deadline* and
//! *limit* are later than it by the grace period, for which an old value is kept.

use std::time::Duration;

use tidewheel_store::{Attributes, Slot, Soft};
use tidewheel_time::{Moment, ticks};

use crate::lifetime::{Lifetime, TtlChoice};
use crate::shard::Shard;
use crate::shard::config::{Config, earlier};
use crate::shard::rules::{Hashed, Rules};
use crate::shard::tags::{HeldTags, LentTags};

/// The lifetime that a caller stated for one entry, when it was stored or later.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StatedLifetime {
    pub(crate) ttl: StatedTtl,
    /// The time until the soft deadline, in ticks.
    fresh_for: Option<u64>,
}

/// The end that a caller stated for an entry.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum StatedTtl {
    /// No end was stated: the configured one applies.
    #[default]
    Nothing,
    Never,
    /// A point in time.
    Point,
    /// After this many ticks.
    For(u64),
    /// No end was stated, and the configured time to live ends at this tick. No `Expiry` moves the
    /// end beyond it.
    Capped(u64),
}

/// The first note of a [`StatedLifetime`] whose end is not a number of ticks.
const NOTHING: u64 = 0;
const NEVER: u64 = u64::MAX;
const POINT: u64 = u64::MAX - 1;
/// This bit is set in a note that is a cap.
const CAPPED: u64 = 1 << 62;

impl StatedLifetime {
    /// Converts it into the notes that the store keeps: if nothing was stated, 0, which takes no
    /// memory.
    pub(crate) fn notes(self) -> [u64; 2] {
        let ttl = match self.ttl {
            StatedTtl::Nothing => NOTHING,
            StatedTtl::Never => NEVER,
            StatedTtl::Point => POINT,
            StatedTtl::For(ticks) => ticks.saturating_add(1).min(CAPPED - 1),
            StatedTtl::Capped(end) => CAPPED | end.min(CAPPED - 1),
        };
        let fresh_for = self.fresh_for.map_or(0, |ticks| ticks.saturating_add(1));
        [ttl, fresh_for]
    }

    pub(crate) fn from_notes([ttl, fresh_for]: [u64; 2]) -> Self {
        Self {
            ttl: match ttl {
                NOTHING => StatedTtl::Nothing,
                NEVER => StatedTtl::Never,
                POINT => StatedTtl::Point,
                cap if cap & CAPPED != 0 => StatedTtl::Capped(cap & !CAPPED),
                more => StatedTtl::For(more - 1),
            },
            fresh_for: fresh_for.checked_sub(1),
        }
    }

    /// Returns whether the caller stated an end, or that there is none. Then no `Expiry` decides
    /// it.
    pub(crate) fn is_given(self) -> bool {
        !matches!(self.ttl, StatedTtl::Nothing | StatedTtl::Capped(_))
    }

    /// The end of the configured time to live, where an `Expiry` may say another.
    pub(crate) fn cap(self) -> Option<u64> {
        match self.ttl {
            StatedTtl::Capped(end) => Some(end),
            _ => None,
        }
    }

    /// Returns the same lifetime with another cap, if it has one.
    #[cfg(feature = "serde")]
    pub(crate) fn with_cap(self, other: impl FnOnce(u64) -> u64) -> Self {
        match self.ttl {
            StatedTtl::Capped(end) => Self {
                ttl: StatedTtl::Capped(other(end)),
                ..self
            },
            _ => self,
        }
    }

    /// Completes a refresher's lifetime with this one, where the refresher stated nothing. `end` is
    /// the entry's, in ticks.
    fn complete(self, lifetime: &mut Lifetime, end: Option<u64>) {
        lifetime.ttl = match (self.ttl, end) {
            (StatedTtl::Nothing | StatedTtl::Capped(_), _) => TtlChoice::Configured,
            (StatedTtl::For(ticks), _) => TtlChoice::For(ticks_long(ticks)),
            (StatedTtl::Point, Some(end)) => TtlChoice::AtTick(end),
            (StatedTtl::Never, _) | (StatedTtl::Point, None) => TtlChoice::Never,
        };
        let fresh_for = self.fresh_for.map(ticks_long);
        lifetime.fresh_for = lifetime.fresh_for.or(fresh_for);
    }
}

fn ticks_long(ticks: u64) -> Duration {
    Duration::from_millis(ticks)
}

/// The part of an entry that its next value inherits from it in a refresh. It is copied when the
/// refresh begins, since the entry may be gone when it ends.
pub(crate) struct Inherited<'a, K, V, S> {
    rules: &'a Rules<K, V, S>,
    stated: StatedLifetime,
    end: Option<u64>,
    /// As the store keeps it.
    grace: u64,
    /// Its tags. An invalidation of one concerns what is stored with it later, too.
    tags: LentTags<'a>,
}

impl<'a, K, V, S> Inherited<'a, K, V, S> {
    /// Of an entry, dead or alive.
    pub(crate) fn of(rules: &'a Rules<K, V, S>, shard: &Shard<K, V, S>, slot: Slot) -> Self {
        let attributes = shard.store.attributes(slot);
        Self {
            rules,
            stated: StatedLifetime::from_notes(attributes.notes),
            end: rules.config.hard_end(&attributes),
            grace: attributes.grace,
            tags: rules.tags.lend_again(attributes.label),
        }
    }

    /// Completes the new value's lifetime, unless its loader stated one.
    pub(crate) fn complete(&self, lifetime: &mut Lifetime) {
        if lifetime.ttl != TtlChoice::Configured {
            return;
        }
        self.stated.complete(lifetime, self.end);
        let stale_for = self.grace.checked_sub(1).map(ticks_long);
        lifetime.stale_for = lifetime.stale_for.or(stale_for);
    }

    /// The tags, for one who is to know whether one of them is invalidated.
    pub(crate) fn lend_tags(&self) -> Option<LentTags<'a>> {
        self.rules.tags.lend_any(self.tags.label())
    }

    /// The tags, for an entry that is stored without any.
    pub(crate) fn tags(&self) -> HeldTags<'a> {
        self.rules.tags.hold_again(self.tags.label())
    }
}

impl<K, V> Config<K, V> {
    /// Returns the part of a stated lifetime that is stored. The end is stored only for a refresher
    /// or an `Expiry`, and `cap` only for an `Expiry`.
    pub(crate) fn stated(&self, lifetime: &Lifetime, cap: Option<u64>) -> StatedLifetime {
        let ttl = match lifetime.ttl {
            TtlChoice::Configured if cap.is_some() => StatedTtl::Capped(cap.unwrap_or(0)),
            TtlChoice::Configured => StatedTtl::Nothing,
            _ if !self.uses_stated() => StatedTtl::Nothing,
            TtlChoice::Never => StatedTtl::Never,
            TtlChoice::At(_) | TtlChoice::Since(..) | TtlChoice::AtTick(_) => StatedTtl::Point,
            TtlChoice::For(ttl) => StatedTtl::For(ticks(ttl)),
        };
        StatedLifetime {
            ttl,
            fresh_for: lifetime.fresh_for.map(ticks),
        }
    }

    /// Returns whether a stated end is needed later.
    fn uses_stated(&self) -> bool {
        self.refresher.is_some() || self.expiry.is_some()
    }

    /// The soft deadline of a lifetime that begins now and has this end.
    pub(crate) fn soft(&self, fresh_for: Option<Duration>, end: Option<u64>, now: Moment) -> Soft {
        match (fresh_for, self.refresh_after, end) {
            (Some(fresh_for), _, _) => Soft::at(now.end(fresh_for)),
            (None, Some(fraction), Some(end)) => {
                let now = now.tick();
                let share = end.saturating_sub(now) as f64 * fraction;
                Soft::at(now.saturating_add(share as u64))
            }
            // There is nothing of which a share may have passed.
            (None, None, _) | (None, Some(_), None) => Soft::NEVER,
        }
    }

    /// The end of an entry that no read moves, as readers see it.
    pub(crate) fn hard_end(&self, attributes: &Attributes) -> Option<u64> {
        let hard = match self.time_to_idle {
            Some(_) => attributes.limit,
            None => attributes.deadline,
        };
        hard.map(|hard| hard.saturating_sub(self.grace(attributes.grace)))
    }
}

impl<K, V, S> Shard<K, V, S> {
    /// Notes that an entry was given another end, now.
    #[inline]
    pub(crate) fn rebase(
        &mut self,
        slot: Slot,
        ttl: impl FnOnce() -> StatedTtl,
        end: Option<u64>,
        now: Moment,
    ) {
        let config = &self.rules.config;
        if config.uses_stated() || config.refresh_after.is_some() {
            self.rebase_soft(slot, ttl(), end, now);
        }
    }

    #[cold]
    fn rebase_soft(&mut self, slot: Slot, ttl: StatedTtl, end: Option<u64>, now: Moment) {
        let (store, config) = (&mut self.store, &self.rules.config);
        let mut stated = StatedLifetime::from_notes(store.notes(slot));
        if config.uses_stated() {
            stated.ttl = ttl;
            store.set_notes(slot, stated.notes());
        }
        // What was said of the value's freshness holds whatever its end.
        if stated.fresh_for.is_none() {
            store.set_soft(slot, config.soft(None, end, now));
        }
    }
}

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

impl<K, V, S> Shard<K, V, S> {
    /// A live entry was read: slides its deadline. Returns what to set when that takes the writer's
    /// lock.
    pub(crate) fn slide(&self, slot: Slot, now: Moment) -> Option<Renewal> {
        let store = &self.store;
        let config = &self.rules.config;
        let grace = self.grace_of(slot);
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
    pub(crate) fn renew(
        &mut self,
        hash: Hashed,
        is: &dyn Fn(&K) -> bool,
        renewal: Renewal,
        now: Moment,
    ) {
        let slot = self.store.find(hash.place(), is);
        let Some(slot) = slot.filter(|slot| self.is_live(*slot, now)) else {
            return;
        };
        // This write has counted itself: exactly one more change means that no other writer came
        // between. Otherwise this may be another value, and is asked again.
        let renewal = if self.changes == renewal.changes.wrapping_add(1) {
            renewal
        } else {
            match self.slide(slot, now) {
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
