//! Moves loans of weight between shards: for a heavy entry, and when the capacity has shrunk.

use std::hash::{BuildHasher, Hash};

use crate::core::inner::{Inner, ShardCell};
use crate::shard::rules::Hashed;

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
    /// Makes sure that an entry of this weight finds room: takes loans back from other shards when
    /// its own and the account cannot hold it. What the key weighs now is room, since it will be
    /// replaced. Locks one shard at a time. `false` when the entry is heavier than the whole
    /// capacity.
    pub(crate) fn make_way(&self, hash: Hashed, key: &K, weight: u32) -> bool {
        let Some(capacity) = self.rules.account.capacity() else {
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
            let replaced = shard
                .find(hash, key)
                .map_or(0, |old| shard.store.weight_of(old));
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
        let got = self.rules.account.borrow(need);
        let got = got + self.gather(self.number(hash), need.saturating_sub(got));
        self.lend(own, need, got);
        true
    }

    /// Gives a shard up to `need` of the weight that was `got` for it, the account the rest.
    fn lend(&self, cell: &ShardCell<K, V, S>, need: u64, got: u64) {
        let used = need.min(got);
        self.hold(cell, |shard| shard.lent += used);
        if got > used {
            self.rules.account.give_back(got - used);
        }
        if self.rules.account.debt() > 0 {
            // The capacity has shrunk meanwhile: who collects did not see this, on its way from
            // shard to shard.
            self.collect();
        }
    }

    /// Finds the weight that an entry lacks which is stored already: the shard was over its loan
    /// meanwhile, by that entry alone. What cannot be found, since the rest is pinned, is made up
    /// for by evicting the entry itself.
    #[cold]
    pub(crate) fn find_room(&self, cell: &ShardCell<K, V, S>, wanted: u64) {
        let number = self
            .shards
            .iter()
            .position(|other| std::ptr::eq(other, cell))
            .unwrap_or(0);
        let got = self.rules.account.borrow(wanted);
        let got = got + self.gather(number, wanted.saturating_sub(got));
        self.lend(cell, wanted, got);
        if got < wanted {
            self.hold_now(cell, |shard, now| {
                shard.evict_down_to(shard.lent, now.tick());
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
                got += self.hold_now(cell, |shard, now| {
                    let weight = match stage {
                        ReclaimStage::Unused => {
                            missing.min(shard.lent.saturating_sub(shard.store.weight()))
                        }
                        ReclaimStage::Share => missing.div_ceil((count - step) as u64),
                        ReclaimStage::All => missing,
                    };
                    shard.reclaim(weight, missing, now.tick())
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
            let debt = self.rules.account.debt();
            if debt == 0 {
                return false;
            }
            let got = self.change(cell, |shard, now| {
                let unused = shard.lent.saturating_sub(shard.store.weight());
                let some = match shard.store.len() as u64 {
                    0 => 0,
                    len => (shard.store.weight() / len).max(1) * EVICTED_PER_HOLD,
                };
                let weight = debt.min(unused.saturating_add(some));
                shard.reclaim(weight, debt, now.tick())
            });
            self.rules.account.give_back(got);
            collected |= got > 0;
        }
        collected
    }
}
