//! `maxmemory`: making room before a command that may add data.

use std::sync::atomic::Ordering::Relaxed;

use crate::command::CommandError;
use crate::eviction::{Choice, Policy};
use crate::gate::Seat;
use crate::keyspace::Keyspace;
use crate::time::{Now, Time};
use crate::value::Object;

/// The most victims that one command waits for: a bound on its latency. Below it the limit is met before
/// the command runs; above it the following commands go on.
const VICTIMS_PER_COMMAND: usize = 64;

/// Due entries that one visit of a shard removes before it looks for a victim.
const DUE_PER_VISIT: u32 = 64;

/// Units of tidying after a victim is gone, so that its page goes back too.
const TIDY_PER_VICTIM: u32 = 16;

impl Keyspace {
    /// Whether more than `maxmemory` is used.
    #[inline]
    pub(crate) fn over_limit(&self) -> bool {
        let limit = self.settings().maxmemory.load(Relaxed);
        limit != 0 && self.used_memory() > limit
    }

    /// Evicts as much as one command would wait for, if more than `maxmemory` is used: for a limit that
    /// was lowered while nobody writes. Returns whether calling again would bring the limit nearer. Exclusive
    /// users that wait go first.
    pub fn shrink(&self, seat: &mut Seat, time: Time) -> bool {
        seat.give_way();
        let _visit = seat.visit();
        if self.keeps_dead() {
            return false;
        }
        // A handful of keys may be all there is, and below what shards report by themselves.
        self.flush_bytes();
        self.over_limit() && self.make_room(&self.timeline.now(time)).is_ok() && self.over_limit()
    }

    /// Evicts until the limit is met, for as long as one command may wait.
    #[cold]
    pub(crate) fn make_room(&self, now: &Now) -> Result<(), CommandError> {
        let policy = self.settings().policy();
        let choice = Choice {
            policy,
            recency: self.recency(),
            samples: self.settings().maxmemory_samples.load(Relaxed),
        };
        let mut garbage = Vec::new();
        let mut gone = 0;
        let mut fruitless = 0;
        // Every shard is asked once before the search counts as failed.
        while self.over_limit() && gone < VICTIMS_PER_COMMAND && fruitless < self.shards() {
            let turn = self.eviction_turn.fetch_add(1, Relaxed) as usize;
            let removed = self.evict_in(turn % self.shards(), now, &choice, &mut garbage);
            gone += removed;
            fruitless = if removed == 0 { fruitless + 1 } else { 0 };
        }
        self.discard(garbage);
        if gone > 0 || !self.over_limit() {
            Ok(())
        } else {
            Err(CommandError::OUT_OF_MEMORY)
        }
    }

    /// Removes what is due in a shard, or else one victim. Returns how many entries are gone.
    fn evict_in(
        &self,
        shard: usize,
        now: &Now,
        choice: &Choice,
        garbage: &mut Vec<Object>,
    ) -> usize {
        let due = self.expire_due(shard, now, DUE_PER_VISIT).fired as usize;
        if due > 0 || choice.policy == Policy::NoEviction {
            return due;
        }
        let mut hold = self.shards[shard].lock();
        let since = self.hooks.stopwatch_ns();
        let mut best = None;
        let (databases, random, cursor) = hold.search();
        for (db, entries) in databases {
            let found = choice.victim(entries, now.time.tick, random, cursor);
            if let Some((slot, score)) = found
                && best.is_none_or(|(_, _, top)| score > top)
            {
                best = Some((db, slot, score));
            }
        }
        let Some((db, slot, _)) = best else { return 0 };
        garbage.extend(hold.evict(db, slot));
        hold.tidy(db, TIDY_PER_VICTIM);
        self.record_hold(since);
        1
    }
}
