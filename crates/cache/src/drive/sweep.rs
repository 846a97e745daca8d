//! The sweep: gives back the memory of entries whose tags were invalidated, in short holds.
//!
//! An invalidated entry is invisible at once. A sweep removes the entries that readers no longer
//! see.
//!
//! One sweep walks all shards, and within a shard the slots from the highest to the lowest. Entries
//! that move meanwhile move to lower slots, so the sweep meets every entry that was there when it
//! began. All requests that come while a sweep runs become one further sweep. After a sweep the
//! driver's thread rests for [`REST`] times as long as the sweep took, so repeated invalidations
//! cost at most a tenth of a core.

use std::hash::{BuildHasher, Hash};

use crate::core::cell::ShardCell;
use crate::core::hooks::SweepHook;
use crate::core::inner::Inner;
use crate::core::sweeps::Sweep;
use crate::shard::rules::Hashed;

/// Slots that one hold of a shard's lock looks at.
const ENTRIES_PER_HOLD: u32 = 32;

/// The driver rests this many times as long as a sweep took before it begins the next.
const REST: u64 = 9;

/// Ticks between two sweeps at least.
const REST_MIN: u64 = 10;

impl<K: Hash + Eq, V, S: BuildHasher> SweepHook<K, V, S> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Inner::remove_of_slots,
            key: Inner::remove_key,
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Goes on with the sweep that was paused, or begins one that was asked for. Looks at `budget`
    /// slots at most; returns whether there is more of it to do at once.
    pub(crate) fn sweep(&self, now: u64, budget: &mut u32) -> bool {
        let sweeps = &self.requests.sweeps;
        let sweep = sweeps.resume().or_else(|| sweeps.begin(now));
        sweep.is_some_and(|sweep| self.go_on_with(sweep, now, budget))
    }

    /// As [`sweep`](Self::sweep), without the pause after the last one. If there are a paused sweep
    /// and a requested one, the paused one comes first.
    pub(crate) fn sweep_all(&self, now: u64, budget: &mut u32) -> bool {
        let sweeps = &self.requests.sweeps;
        let mut go_on = |sweep| self.go_on_with(sweep, now, budget);
        sweeps.resume().is_some_and(&mut go_on) || sweeps.begin(now).is_some_and(go_on)
    }

    /// Looks under the reader lock, and takes the writer lock only where there is something to
    /// remove.
    fn go_on_with(&self, mut at: Sweep, now: u64, budget: &mut u32) -> bool {
        while at.shard < self.shards.len() {
            if *budget == 0 || self.rules.events.must_wait() {
                self.requests.sweeps.pause(at);
                return true;
            }
            let hold = ENTRIES_PER_HOLD.min(*budget);
            *budget -= hold;
            match self.sweep_slots(&self.shards[at.shard], at.before, hold) {
                Some(next) => at.before = next,
                None => {
                    at.before = u32::MAX;
                    at.shard += 1;
                }
            }
        }
        let rest = (self.passed_since(at.began) * REST).max(REST_MIN);
        self.requests.sweeps.end(now.saturating_add(rest));
        false
    }

    /// Sweeps a shard that is about to be emptied.
    pub(crate) fn sweep_shard(&self, cell: &ShardCell<K, V>) {
        let mut before = Some(u32::MAX);
        while let Some(at) = before {
            before = self.sweep_some(cell, at);
        }
    }

    /// Sweeps as many slots of a shard as one hold may; returns where to go on.
    pub(crate) fn sweep_some(&self, cell: &ShardCell<K, V>, before: u32) -> Option<u32> {
        self.sweep_slots(cell, before, ENTRIES_PER_HOLD)
    }

    /// Sweeps the next slots of a shard; returns where to go on.
    fn sweep_slots(&self, cell: &ShardCell<K, V>, before: u32, count: u32) -> Option<u32> {
        let hook = self.hooks.sweep.get()?;
        (hook.slots)(self, cell, before, count)
    }

    fn remove_of_slots(&self, cell: &ShardCell<K, V>, before: u32, count: u32) -> Option<u32> {
        let mut found = false;
        let next = self
            .read(cell)
            .store
            .scan_labels(before, count, |_, label| {
                found |= !self.rules.tags.is_current(label);
            });
        if found {
            self.hold_now(cell, |shard, now| {
                shard.sweep(&self.rules, before, count, now);
            });
        }
        next
    }

    /// Removes an entry that a reader has found invalidated.
    fn remove_key(&self, hash: Hashed, is: &dyn Fn(&K) -> bool) {
        self.change(self.cell(hash), |shard, now| {
            shard.remove_invalidated(&self.rules, hash, is, now);
        });
    }
}
