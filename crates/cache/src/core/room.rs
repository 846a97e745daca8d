//! Makes room for an entry that is stored: by loans, by removing due entries, by eviction from this
//! shard or from others.

use std::hash::{BuildHasher, Hash};
use std::mem::needs_drop;

use tidewheel_store::{Removed, Slot};

use crate::core::hash::Hashed;
use crate::core::inner::Inner;
use crate::core::removal::RemovalCause;
use crate::core::shard::{Shard, ShardCell, ShardRequest};
use crate::stats::Count;

/// Timer records of due entries that an insertion touches at once before it evicts a live one.
const DUE_BEFORE_EVICTION: u32 = 16;

/// The number of such rounds while they meet only timer records that must be moved, or whose
/// deadlines have moved.
const DUE_ROUNDS: u32 = 16;

/// Timer records that it looks at after that, to find one entry that is due behind more of them.
const DUE_LOOKED_AT: usize = 64;

/// Entries of usual weight that one hold evicts when the capacity has shrunk.
const EVICTED_PER_HOLD: u64 = 16;

/// The stages in which weight is taken from a shard.
#[derive(Clone, Copy)]
enum ReclaimStage {
    /// Weight that the shard was lent and does not use.
    Unused,
    /// Its share of what is missing.
    Share,
    /// All weight that is missing.
    All,
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Brings a shard's weight within what it was lent: borrows, then removes what is due, then
    /// evicts. What was stored just now stays: if it alone is more than the shard was lent, the
    /// rest is noted as `wanted`, and [`write`](Self::write) takes it from other shards after this
    /// one's lock is released. So is it noted if the cache is still too large for a capacity that
    /// has shrunk: pinned entries kept what they had been lent, and this one may be stored in the
    /// place of one of them.
    pub(crate) fn make_room(&self, shard: &mut Shard<K, V>, stored: Slot, now: u64) {
        while shard.store.weight() > shard.lent {
            let need = shard.store.weight() - shard.lent;
            let got = self.account.borrow(need);
            shard.lent += got;
            if got >= need {
                return;
            }
            if self.make_room_of_due(shard, now) {
                continue;
            }
            if !self.evict_one(shard, Some(stored), now) {
                shard.wanted = ShardRequest::Room(shard.store.weight() - shard.lent);
                return;
            }
        }
        if self.account.debt() > 0 {
            shard.wanted = ShardRequest::RepayDebt;
        }
    }

    /// Evicts the entry that the policy would rather lose, though not `kept`; `false` when all are
    /// pinned. If its time is over, it leaves for that: records of other timers were before its
    /// own.
    #[inline(always)]
    fn evict_one(&self, shard: &mut Shard<K, V>, kept: Option<Slot>, now: u64) -> bool {
        let place_of = |key: &K| self.place_of(key);
        let Some(evicted) = shard.store.evict_other(kept, &place_of) else {
            return false;
        };
        self.evicted(shard, evicted, now);
        true
    }

    /// Files an entry that was evicted.
    #[inline(always)]
    pub(crate) fn evicted(&self, shard: &mut Shard<K, V>, evicted: Removed<K, V>, now: u64) {
        let is_dead = evicted.deadline.is_some_and(|deadline| deadline <= now);
        // Nearly all: nobody drops it or is told of it, and it leaves nothing else behind.
        if !needs_drop::<(K, V)>()
            && !is_dead
            && evicted.label == 0
            && !self.delivery.has_listener()
        {
            self.counters.add(Count::Eviction, 1);
            shard.removals += 1;
            return;
        }
        let cause = match is_dead {
            true => RemovalCause::Expired,
            false => RemovalCause::Evicted,
        };
        self.made_room(shard, evicted, cause, now);
    }

    /// Returns whether one eviction makes room for an entry of this weight: nothing can be
    /// borrowed, nothing is due, and there is no debt.
    #[inline(always)]
    pub(crate) fn must_evict_for(&self, shard: &Shard<K, V>, weight: u32, now: u64) -> bool {
        shard.store.weight() + u64::from(weight) > shard.lent
            && !self.account.may_lend()
            && self.account.debt() == 0
            && !Self::has_due(shard, now)
    }

    /// Returns whether the driver would have something to do.
    #[inline(always)]
    fn has_due(shard: &Shard<K, V>, now: u64) -> bool {
        // What was stored by this very call is not published yet.
        shard.published <= now
            || shard.republish && shard.store.next_deadline().is_some_and(|next| next <= now)
    }

    #[inline(always)]
    fn made_room(
        &self,
        shard: &mut Shard<K, V>,
        removed: Removed<K, V>,
        cause: RemovalCause,
        now: u64,
    ) {
        let cause = self.cause_of(removed.label, cause);
        self.file_removal(shard, removed, cause, now);
        shard.removals += 1;
    }

    /// Removes a few entries that are due; `false` when it finds none. As long as none of the timer
    /// records that it meets is of an entry that is due, it goes on, [`DUE_ROUNDS`] times at most;
    /// then it looks past [`DUE_LOOKED_AT`] more. So an insertion takes no longer however much time
    /// has passed.
    #[inline]
    fn make_room_of_due(&self, shard: &mut Shard<K, V>, now: u64) -> bool {
        Self::has_due(shard, now) && self.remove_due(shard, now)
    }

    fn remove_due(&self, shard: &mut Shard<K, V>, now: u64) -> bool {
        let before = shard.store.len();
        for _ in 0..DUE_ROUNDS {
            let progress = self.expire_some(shard, now, DUE_BEFORE_EVICTION);
            if shard.store.len() < before {
                return true;
            }
            if !progress.backlog {
                return false;
            }
        }
        let place_of = |key: &K| self.place_of(key);
        let Some(due) = shard.store.expire_one(now, DUE_LOOKED_AT, &place_of) else {
            return false;
        };
        self.made_room(shard, due, RemovalCause::Expired, now);
        true
    }

    /// Makes sure that an entry of this weight finds room: takes loans back from other shards when
    /// its own and the account cannot hold it. What the key weighs now is room, since it will be
    /// replaced. Locks one shard at a time. `false` when the entry is heavier than the whole
    /// capacity.
    pub(crate) fn make_way(&self, hash: Hashed, key: &K, weight: u32) -> bool {
        let Some(capacity) = self.account.capacity() else {
            return true;
        };
        let weight = u64::from(weight);
        if weight > capacity {
            return false;
        }
        if self.shards.len() == 1 {
            return true;
        }
        let own = self.cell(hash);
        let room = {
            let shard = self.read(own);
            if weight <= shard.lent / 2 {
                return true;
            }
            let replaced =
                Self::find(&shard, hash, key).map_or(0, |old| shard.store.weight_of(old));
            shard
                .lent
                .saturating_add(u64::from(replaced))
                .saturating_sub(shard.store.weight())
        };
        // Heavy for its shard: lend it what it needs beyond what it uses now.
        let need = weight.saturating_sub(room);
        if need == 0 {
            return true;
        }
        let got = self.account.borrow(need);
        let got = got + self.gather(self.number(hash), need.saturating_sub(got));
        self.lend(own, need, got);
        true
    }

    /// Gives a shard up to `need` of the weight that was `got` for it, the account the rest.
    fn lend(&self, cell: &ShardCell<K, V>, need: u64, got: u64) {
        let used = need.min(got);
        self.hold(cell, |shard| shard.lent += used);
        if got > used {
            self.account.give_back(got - used);
        }
        if self.account.debt() > 0 {
            // The capacity has shrunk meanwhile: who collects did not see this, on its way from
            // shard to shard.
            self.collect();
        }
    }

    /// Finds the weight that an entry lacks which is stored already: the shard was over its loan
    /// meanwhile, by that entry alone. What cannot be found, since the rest is pinned, is made up
    /// for by evicting the entry itself.
    #[cold]
    pub(crate) fn find_room(&self, cell: &ShardCell<K, V>, wanted: u64) {
        let number = self
            .shards
            .iter()
            .position(|other| std::ptr::eq(other, cell))
            .unwrap_or(0);
        let got = self.account.borrow(wanted);
        let got = got + self.gather(number, wanted.saturating_sub(got));
        self.lend(cell, wanted, got);
        if got < wanted {
            let now = self.time.now().tick();
            self.hold(cell, |shard| {
                let lent = shard.lent;
                self.evict_down_to(shard, lent, now);
            });
        }
    }

    /// Takes loans back from the shards other than `number`: what they do not use, then a share of
    /// each, then whatever can be had. Returns how much; it may be more than `need`.
    fn gather(&self, number: usize, need: u64) -> u64 {
        let count = self.shards.len();
        let mut got = 0;
        for stage in [ReclaimStage::Unused, ReclaimStage::Share, ReclaimStage::All] {
            for step in 1..count {
                if got >= need {
                    return got;
                }
                let missing = need - got;
                let cell = &self.shards[(number + step) % count];
                got += self.hold(cell, |shard| {
                    let weight = match stage {
                        ReclaimStage::Unused => {
                            missing.min(shard.lent.saturating_sub(shard.store.weight()))
                        }
                        ReclaimStage::Share => missing.div_ceil((count - step) as u64),
                        ReclaimStage::All => missing,
                    };
                    self.reclaim(shard, weight, missing)
                });
            }
        }
        got
    }

    /// Takes back what shards owe since the capacity has shrunk: what they do not use, then a few
    /// entries of each in turn, in short holds of their locks. Ends early when all that is left is
    /// pinned.
    pub(crate) fn collect(&self) {
        while self.collect_some() {}
    }

    /// One round of that. Whether it got something.
    pub(crate) fn collect_some(&self) -> bool {
        let mut collected = false;
        for cell in &self.shards {
            let debt = self.account.debt();
            if debt == 0 {
                return false;
            }
            let got = self.write(cell, |shard| {
                let unused = shard.lent.saturating_sub(shard.store.weight());
                let some = match shard.store.len() as u64 {
                    0 => 0,
                    len => (shard.store.weight() / len).max(1) * EVICTED_PER_HOLD,
                };
                self.reclaim(shard, debt.min(unused.saturating_add(some)), debt)
            });
            self.account.give_back(got);
            collected |= got > 0;
        }
        collected
    }

    /// Takes `weight` of a shard's loan back, evicting for it, and returns what could be had. An
    /// entry that leaves may free more than that: of this, it takes as much as is `missing`, so
    /// that no other entry leaves for it.
    fn reclaim(&self, shard: &mut Shard<K, V>, weight: u64, missing: u64) -> u64 {
        let target = shard.lent.saturating_sub(weight);
        if shard.store.weight() > target {
            let now = self.time.now().tick();
            self.evict_down_to(shard, target, now);
        }
        let unused = shard.lent.saturating_sub(shard.store.weight());
        let taken = unused.min(missing);
        shard.lent -= taken;
        taken
    }

    /// Removes entries until the shard weighs no more than `target`: first what is due.
    fn evict_down_to(&self, shard: &mut Shard<K, V>, target: u64, now: u64) {
        while shard.store.weight() > target {
            // Once everything is pinned, the overshoot is the caller's wish.
            if !self.make_room_of_due(shard, now) && !self.evict_one(shard, None, now) {
                return;
            }
        }
    }
}
