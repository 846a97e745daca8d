//! Makes room for an entry that is stored: by a loan, by removing due entries, by eviction.

use std::hash::{BuildHasher, Hash};
use std::mem::needs_drop;

use tidewheel_store::{Removed, Slot};

use super::Shard;
use super::effects::ShardRequest;
use super::rules::Rules;
use crate::removal::RemovalCause;
use crate::stats::Count;

/// Timer records of due entries that an insertion touches at once before it evicts a live one.
const DUE_BEFORE_EVICTION: u32 = 16;

/// The number of such rounds while they meet only timer records that must be moved, or whose
/// deadlines have moved.
const DUE_ROUNDS: u32 = 16;

/// Timer records that it looks at after that, to find one entry that is due behind more of them.
const DUE_LOOKED_AT: usize = 64;

impl<K: Hash + Eq, V> Shard<K, V> {
    /// Brings the weight within what was lent: borrows, then removes what is due, then evicts. What
    /// was stored just now stays: if it alone is more than the shard was lent, the rest is noted as
    /// `wanted`, and is taken from other shards after this one's lock is released. So is it noted
    /// if the cache is still too large for a capacity that has shrunk: pinned entries kept what
    /// they had been lent, and this one may be stored in the place of one of them.
    pub(super) fn make_room<S: BuildHasher>(
        &mut self,
        rules: &Rules<K, V, S>,
        stored: Slot,
        now: u64,
    ) {
        while self.store.weight() > self.lent {
            let need = self.store.weight() - self.lent;
            let got = rules.account.borrow(need);
            self.lent += got;
            if got >= need {
                return;
            }
            if self.make_room_of_due(rules, now) {
                continue;
            }
            if !self.evict_one(rules, Some(stored), now) {
                let lacks = self.store.weight() - self.lent;
                self.effects.wanted = ShardRequest::Room(lacks);
                return;
            }
        }
        if rules.account.debt() > 0 {
            self.effects.wanted = ShardRequest::RepayDebt;
        }
    }

    /// Evicts the entry that the policy would rather lose, though not `kept`; `false` when all are
    /// pinned. If its time is over, it leaves for that: records of other timers were before its
    /// own.
    #[inline(always)]
    fn evict_one<S: BuildHasher>(
        &mut self,
        rules: &Rules<K, V, S>,
        kept: Option<Slot>,
        now: u64,
    ) -> bool {
        let place_of = |key: &K| rules.place_of(key);
        let Some(evicted) = self.store.evict_other(kept, &place_of) else {
            return false;
        };
        self.evicted(rules, evicted, now);
        true
    }

    /// Files an entry that was evicted.
    #[inline(always)]
    pub(super) fn evicted<S>(&mut self, rules: &Rules<K, V, S>, evicted: Removed<K, V>, now: u64) {
        let is_dead = evicted.deadline.is_some_and(|deadline| deadline <= now);
        // Nearly all: nobody drops it or is told of it, and it leaves nothing else behind.
        if !needs_drop::<(K, V)>() && !is_dead && evicted.label == 0 && !rules.events.has_listener()
        {
            self.effects.counts.add(Count::Eviction, 1);
            self.removals += 1;
            return;
        }
        let cause = match is_dead {
            true => RemovalCause::Expired,
            false => RemovalCause::Evicted,
        };
        self.made_room(rules, evicted, cause, now);
    }

    /// Returns whether one eviction makes room for an entry of this weight: nothing can be
    /// borrowed, nothing is due, and there is no debt.
    #[inline(always)]
    pub(crate) fn must_evict_for<S>(&self, rules: &Rules<K, V, S>, weight: u32, now: u64) -> bool {
        self.store.weight() + u64::from(weight) > self.lent
            && !rules.account.may_lend()
            && rules.account.debt() == 0
            && !self.has_due(now)
    }

    /// Returns whether the driver would have something to do.
    #[inline(always)]
    fn has_due(&self, now: u64) -> bool {
        // What was stored by this very call is not published yet.
        self.published <= now
            || self.republish && self.store.next_deadline().is_some_and(|next| next <= now)
    }

    #[inline(always)]
    fn made_room<S>(
        &mut self,
        rules: &Rules<K, V, S>,
        removed: Removed<K, V>,
        cause: RemovalCause,
        now: u64,
    ) {
        let cause = rules.cause_of(removed.label, cause);
        self.effects.removed(rules, removed, cause, now);
        self.removals += 1;
    }

    /// Removes a few entries that are due; `false` when it finds none. As long as none of the timer
    /// records that it meets is of an entry that is due, it goes on, [`DUE_ROUNDS`] times at most;
    /// then it looks past [`DUE_LOOKED_AT`] more. So an insertion takes no longer however much time
    /// has passed.
    #[inline]
    fn make_room_of_due<S: BuildHasher>(&mut self, rules: &Rules<K, V, S>, now: u64) -> bool {
        self.has_due(now) && self.remove_due(rules, now)
    }

    fn remove_due<S: BuildHasher>(&mut self, rules: &Rules<K, V, S>, now: u64) -> bool {
        let before = self.store.len();
        for _ in 0..DUE_ROUNDS {
            let progress = self.expire(rules, now, DUE_BEFORE_EVICTION);
            if self.store.len() < before {
                return true;
            }
            if !progress.backlog {
                return false;
            }
        }
        let place_of = |key: &K| rules.place_of(key);
        let Some(due) = self.store.expire_one(now, DUE_LOOKED_AT, &place_of) else {
            return false;
        };
        self.made_room(rules, due, RemovalCause::Expired, now);
        true
    }

    /// Takes `weight` of the loan back, evicting for it, and returns what could be had. An
    /// entry that leaves may free more than that: of this, it takes as much as is `missing`, so
    /// that no other entry leaves for it.
    pub(crate) fn reclaim<S: BuildHasher>(
        &mut self,
        rules: &Rules<K, V, S>,
        weight: u64,
        missing: u64,
        now: u64,
    ) -> u64 {
        self.evict_down_to(rules, self.lent.saturating_sub(weight), now);
        let unused = self.lent.saturating_sub(self.store.weight());
        let taken = unused.min(missing);
        self.lent -= taken;
        taken
    }

    /// Removes entries until the shard weighs no more than `target`: first what is due.
    pub(crate) fn evict_down_to<S: BuildHasher>(
        &mut self,
        rules: &Rules<K, V, S>,
        target: u64,
        now: u64,
    ) {
        while self.store.weight() > target {
            // Once everything is pinned, the overshoot is the caller's wish.
            if !self.make_room_of_due(rules, now) && !self.evict_one(rules, None, now) {
                return;
            }
        }
    }
}
