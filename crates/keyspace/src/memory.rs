//! `maxmemory`: making room before a command that may add data, and while nobody writes.
//!
//! Room is made for what is used already and for what the command brings. That is bounded in time, the more so
//! the less the command brings: a megabyte in place of values of a hundred bytes takes ten thousand victims.
//! A command that has waited so long runs if as much was freed as it brings, so that the limit comes nearer
//! whatever is written; otherwise it is refused, and the next one goes on. What grew beyond the limit all the
//! same ([`exceeds_limit`](Keyspace::exceeds_limit)) is for [`shrink`](Keyspace::shrink) to bring down.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_resp::Args;
use tidewheel_store::Value;

use crate::command::{Command, CommandError};
use crate::eviction::{Choice, Policy};
use crate::gate::Seat;
use crate::keyspace::Keyspace;
use crate::time::{Now, Time};
use crate::value::{LARGE, Object};

/// How long any command may wait for room.
const WAIT_NS: u64 = 1_000_000;

/// How much longer for each byte that it brings: a victim of a hundred bytes takes one to two microseconds,
/// most of which is waiting for memory.
const WAIT_NS_PER_BYTE: u64 = 30;

/// How long at most.
const WAIT_NS_MAX: u64 = 50_000_000;

/// The most visits of shards for one command, should the stopwatch stand still.
const VISITS_MAX: usize = 1 << 16;

/// The most victims of one visit, under one hold of the shard's lock.
const VICTIMS_PER_VISIT: usize = 8;

/// Due entries that one visit of a shard removes before it looks for a victim.
const DUE_PER_VISIT: u32 = 64;

/// Units of tidying after a victim is gone, so that its page goes back too.
const TIDY_PER_VICTIM: u32 = 16;

/// What a visit of a shard has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visit {
    /// Nothing there may go.
    Bare,
    /// Something may, but none was met.
    Missed,
    /// Something went.
    Freed,
}

/// Why the search for victims has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// There is room.
    Enough,
    /// Nothing may go any more.
    Bare,
    /// It took too long.
    Spent,
}

impl Keyspace {
    /// Whether more than `maxmemory` would be used with so many bytes more.
    #[inline]
    pub(crate) fn lacks(&self, incoming: usize) -> bool {
        let limit = self.settings().maxmemory.load(Relaxed);
        limit != 0 && self.used_memory() + incoming as u64 > limit
    }

    /// Whether more than `maxmemory` is used though something might be evicted: then
    /// [`shrink`](Self::shrink) is worth calling. Lock-free.
    #[must_use]
    pub fn exceeds_limit(&self) -> bool {
        self.lacks(0) && self.settings().policy() != Policy::NoEviction
    }

    /// Evicts for as long as one command would wait, if more than `maxmemory` is used: for a limit that was
    /// lowered, or exceeded, while nobody writes. Returns whether calling again would bring the limit nearer.
    /// Exclusive users that wait go first.
    pub fn shrink(&self, seat: &mut Seat, time: Time) -> bool {
        seat.give_way();
        let _visit = seat.visit();
        if self.keeps_dead() {
            return false;
        }
        // A handful of keys may be all there is, and below what shards report by themselves.
        self.flush_bytes();
        self.lacks(0) && self.evict(0, &self.timeline.now(time)) == End::Spent && self.lacks(0)
    }

    /// Makes room for a command's data.
    #[cold]
    pub(crate) fn make_room_for(
        &self,
        row: &Command,
        db: u32,
        args: Args<'_>,
        now: &Now,
    ) -> Result<(), CommandError> {
        let brought = args.bytes();
        if brought as u64 > self.settings().maxmemory.load(Relaxed) {
            // Whatever went, it would not fit.
            return Err(CommandError::OUT_OF_MEMORY);
        }
        let incoming = brought.saturating_sub(self.replaced(row, db, args, brought));
        let before = self.used_memory();
        let end = self.evict(incoming, now);
        if end == End::Enough || !self.lacks(0) {
            return Ok(());
        }
        // What shards have kept back may be the room.
        self.flush_bytes();
        let freed = before.saturating_sub(self.used_memory());
        let paid = end == End::Spent && freed >= incoming as u64;
        if paid || !self.lacks(0) {
            Ok(())
        } else {
            Err(CommandError::OUT_OF_MEMORY)
        }
    }

    /// Bytes of the large value that a command's large value will replace.
    fn replaced(&self, row: &Command, db: u32, args: Args<'_>, brought: usize) -> usize {
        if brought <= LARGE || row.stored_argument == 0 || row.name == "append" {
            return 0;
        }
        let key = self.key(args.get(row.keys.first as usize).unwrap_or_default());
        let hold = self.shards[key.shard].lock();
        let entries = hold.entries(db);
        match entries
            .find(key.hash, key.bytes)
            .map(|slot| entries.value(slot))
        {
            Some(Value::Object(object)) => object.bytes(),
            _ => 0,
        }
    }

    /// Evicts until there is room for `incoming` bytes.
    fn evict(&self, incoming: usize, now: &Now) -> End {
        let choice = Choice {
            policy: self.settings().policy(),
            recency: self.recency(),
            samples: self.settings().maxmemory_samples.load(Relaxed),
        };
        let wait = WAIT_NS.saturating_add(WAIT_NS_PER_BYTE.saturating_mul(incoming as u64));
        let until = self.hooks.stopwatch_ns() + wait.min(WAIT_NS_MAX);
        let mut garbage = Vec::new();
        // From here on shard after shard, whoever else searches: none is passed over.
        let first = self.eviction_turn.fetch_add(1, Relaxed) as usize;
        let (mut visits, mut bare) = (0, 0);
        let end = loop {
            if !self.lacks(incoming) {
                break End::Enough;
            }
            if bare == self.shards() {
                break End::Bare;
            }
            if visits == VISITS_MAX || visits > 0 && self.hooks.stopwatch_ns() >= until {
                break End::Spent;
            }
            let shard = first.wrapping_add(visits) % self.shards();
            let visit = self.evict_in(shard, incoming, now, &choice, &mut garbage);
            visits += 1;
            bare = if visit == Visit::Bare { bare + 1 } else { 0 };
        };
        self.discard(garbage);
        end
    }

    /// Removes what is due in a shard, or else a few victims.
    fn evict_in(
        &self,
        shard: usize,
        incoming: usize,
        now: &Now,
        choice: &Choice,
        garbage: &mut Vec<Object>,
    ) -> Visit {
        let is_due = now.reached(self.shards[shard].next_deadline());
        let due = is_due.then(|| self.expire_due(shard, now, DUE_PER_VISIT).fired);
        let mut hold = self.shards[shard].lock();
        hold.flush_bytes();
        if due.is_some_and(|fired| fired > 0) {
            return Visit::Freed;
        }
        let since = self.hooks.stopwatch_ns();
        let mut visit = Visit::Bare;
        for _ in 0..VICTIMS_PER_VISIT {
            let (db, slot) = match hold.victim(choice, now.time.tick) {
                Ok(found) => found,
                Err(candidates) => {
                    if candidates && visit == Visit::Bare {
                        visit = Visit::Missed;
                        // Timer records of keys that are gone lie in the way.
                        hold.tidy_timers();
                    }
                    break;
                }
            };
            garbage.extend(hold.evict(db, slot));
            hold.tidy(db, TIDY_PER_VICTIM);
            hold.flush_bytes();
            visit = Visit::Freed;
            if !self.lacks(incoming) {
                break;
            }
        }
        self.record_hold(since);
        visit
    }
}
