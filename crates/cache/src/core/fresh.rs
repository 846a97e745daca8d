//! Until when an entry is fresh, and what of its lifetime its next value has too.
//!
//! A *soft deadline* is a point in time of the value: so long after it was stored. It follows from
//! `refresh_after`, as a share of the time to live, or was said for the entry. No read moves it,
//! and no idle time has a part in it; a new time to live has a new share.

use std::time::Duration;

use tidewheel_store::{Attributes, Slot, Soft, TypedStore};

use crate::core::config::Config;
use crate::core::inner::Inner;
use crate::core::shard::Shard;
use crate::core::tags::{HeldTags, LentTags};
use crate::lifetime::{Lifetime, TtlChoice};
use tidewheel_time::{Moment, ticks};

/// What was said about one entry's lifetime, when it was stored or since.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StatedLifetime {
    pub(crate) ttl: StatedTtl,
    /// In ticks.
    fresh_for: Option<u64>,
}

/// What was said about when an entry ends.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum StatedTtl {
    /// Nothing: what was configured applies.
    #[default]
    Nothing,
    Never,
    /// A point in time.
    Point,
    /// After this many ticks.
    For(u64),
    /// Nothing; and this is the tick at which the configured time to live ends, beyond which no
    /// `Expiry` moves the end.
    Capped(u64),
}

/// The first note of [`Said`] for those that are no number of ticks.
const NOTHING: u64 = 0;
const NEVER: u64 = u64::MAX;
const POINT: u64 = u64::MAX - 1;
/// This bit is set in those that are a cap.
const CAPPED: u64 = 1 << 62;

impl StatedLifetime {
    /// As the store keeps it: nothing said is 0, which takes no memory.
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

    /// Whether an end was given, or that there is none: no `Expiry` says another.
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

    /// The same with another cap, if it has one.
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

    /// A lifetime as a refresher has said it; where it has said nothing, as this says. `end` is the
    /// entry's, in ticks.
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

/// What a refresh keeps of the entry whose next value it loads: taken when it begins, since the
/// entry may be gone when it ends.
pub(crate) struct Inherited<'a, K, V, S> {
    inner: &'a Inner<K, V, S>,
    stated: StatedLifetime,
    end: Option<u64>,
    /// As the store keeps it.
    grace: u64,
    /// Its tags. An invalidation of one concerns what is stored with it later, too.
    tags: LentTags<'a>,
}

impl<'a, K, V, S> Inherited<'a, K, V, S> {
    /// Under the shard's lock.
    pub(crate) fn of(inner: &'a Inner<K, V, S>, store: &TypedStore<K, V>, slot: Slot) -> Self {
        let attributes = store.attributes(slot);
        Self {
            inner,
            stated: StatedLifetime::from_notes(attributes.notes),
            end: inner.config.hard_end(&attributes),
            grace: attributes.grace,
            tags: inner.tags.lend_again(attributes.label),
        }
    }

    /// The lifetime of the new value, where its loader has said no other.
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
        self.inner.tags.lend_any(self.tags.label())
    }

    /// The tags, for an entry that is stored without any.
    pub(crate) fn tags(&self) -> HeldTags<'a> {
        self.inner.tags.hold_again(self.tags.label())
    }
}

impl<K, V> Config<K, V> {
    /// What is kept of what was said: of the end, only for a refresher and an `Expiry`, and `cap`
    /// for the latter.
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

    /// Whether anything is decided later by what was said of an entry's end.
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

    /// Notes that an entry was given another end, now.
    #[inline]
    pub(crate) fn rebase(
        &self,
        shard: &mut Shard<K, V>,
        slot: Slot,
        ttl: impl FnOnce() -> StatedTtl,
        end: Option<u64>,
        now: Moment,
    ) {
        if self.uses_stated() || self.refresh_after.is_some() {
            self.rebase_soft(shard, slot, ttl(), end, now);
        }
    }

    #[cold]
    fn rebase_soft(
        &self,
        shard: &mut Shard<K, V>,
        slot: Slot,
        ttl: StatedTtl,
        end: Option<u64>,
        now: Moment,
    ) {
        let store = &mut shard.store;
        let mut stated = StatedLifetime::from_notes(store.notes(slot));
        if self.uses_stated() {
            stated.ttl = ttl;
            store.set_notes(slot, stated.notes());
        }
        // What was said of the value's freshness holds whatever its end.
        if stated.fresh_for.is_none() {
            store.set_soft(slot, self.soft(None, end, now));
        }
    }
}
