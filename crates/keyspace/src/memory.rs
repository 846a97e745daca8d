//! `maxmemory`: making room before a command that may add data, and while nobody writes.
//!
//! Room is made for what is used already and for what the command brings. As many bytes as it brings it must
//! free, however many victims that takes: a megabyte in place of values of a hundred bytes takes ten thousand.
//! Only a guard bounds that in time. What is too much beyond that it works at for a short time. So the limit comes
//! nearer, whatever is written, and nobody is refused while something may go. Whoever has not freed so much, and does
//! not fit, is refused, though nothing exceeds the limit yet. What is left, or grew beyond the limit
//! unforeseen ([`exceeds_limit`](Keyspace::exceeds_limit)), is for the next commands and for
//! [`shrink`](Keyspace::shrink) to bring down.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_resp::Args;

use crate::command::Command;
use crate::demand::{Demand, growth};
use crate::error::CommandError;
use crate::eviction::{Choice, Policy};
use crate::gate::Seat;
use crate::keyspace::Keyspace;
use crate::shard::Hold;
use crate::time::{Now, Time};
use crate::value::Object;

/// How long a command that has freed as much as it brings works at what others have left.
const SHORT_NS: u64 = 1_000_000;

/// How long a command may take to free as much as it brings: a guard, against machines that stand still.
const LONG_NS: u64 = 1_000_000_000;

/// The most visits of shards for one command, should the stopwatch stand still, beside one for every
/// [`BYTES_PER_VISIT`] that it brings.
const VISITS_MAX: usize = 1 << 16;

/// Bytes that a visit frees at the least, nearly always.
const BYTES_PER_VISIT: usize = 64;

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
    /// So many bytes went. Something that moved may have taken more than was freed.
    Freed(i64),
}

/// Why the search for victims has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// There is room.
    Enough,
    /// As much was freed as is brought; more is used than should be.
    Paid,
    /// Nothing may go any more.
    Bare,
    /// It took too long.
    Spent,
}

/// How long a search may last, and how far it has come.
struct Search {
    brought: usize,
    began_ns: u64,
    visits: usize,
    /// Visits since one found that something may go.
    bare: usize,
    freed: i64,
}

impl Search {
    /// Whether as much was freed as is brought.
    fn is_paid(&self) -> bool {
        self.freed >= self.brought as i64
    }

    /// Why no other shard is visited, if none is.
    fn end(&self, shards: usize, now_ns: u64) -> Option<End> {
        if self.bare == shards {
            return Some(End::Bare);
        }
        let passed = now_ns.saturating_sub(self.began_ns);
        let too_many = self.visits >= VISITS_MAX + self.brought / BYTES_PER_VISIT;
        if self.visits > 0 && self.is_paid() && (passed >= SHORT_NS || too_many) {
            return Some(End::Paid);
        }
        (passed >= LONG_NS || too_many).then_some(End::Spent)
    }

    fn note(&mut self, visit: Visit) {
        self.visits += 1;
        self.bare = if visit == Visit::Bare {
            self.bare + 1
        } else {
            0
        };
        if let Visit::Freed(bytes) = visit {
            self.freed += bytes;
        }
    }
}

impl Keyspace {
    /// Whether there is a `maxmemory`.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.rules().maxmemory.load(Relaxed) != 0
    }

    /// Whether more than `maxmemory` would be used with so many bytes more.
    #[inline]
    pub(crate) fn lacks(&self, incoming: usize) -> bool {
        let limit = self.rules().maxmemory.load(Relaxed);
        limit != 0 && self.used_memory() + incoming as u64 > limit
    }

    /// Whether more than `maxmemory` is used though something might be evicted: then
    /// [`shrink`](Self::shrink) is worth calling. Lock-free.
    #[must_use]
    pub fn exceeds_limit(&self) -> bool {
        self.lacks(0) && self.rules().policy() != Policy::NoEviction
    }

    /// Evicts for a short time, if more than `maxmemory` is used: for a limit that was
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
        self.lacks(0) && self.evict(0, &Now::of(&self.timeline, time)) == End::Paid && self.lacks(0)
    }

    /// Makes room for a command's data. Returns what time it is then.
    #[cold]
    pub(crate) fn make_room_for(
        &self,
        seat: &mut Seat,
        row: &Command,
        db: u32,
        args: Args<'_>,
        now: &Now,
    ) -> Result<Now, CommandError> {
        let began_ns = self.hooks.stopwatch_ns();
        let made = self.make_room(row, db, args, now);
        seat.delay();
        let passed_ns = self.hooks.stopwatch_ns().saturating_sub(began_ns);
        made.map(|()| Now::of(&self.timeline, now.time.after(passed_ns)))
    }

    fn make_room(
        &self,
        row: &Command,
        db: u32,
        args: Args<'_>,
        now: &Now,
    ) -> Result<(), CommandError> {
        let demand = Demand::of_call(self, row, db, args);
        if demand.whole as u64 > self.rules().maxmemory.load(Relaxed) {
            // Whatever went, it would not fit.
            return Err(CommandError::OUT_OF_MEMORY);
        }
        let end = self.evict(demand.added, now);
        if matches!(end, End::Enough | End::Paid) {
            return Ok(());
        }
        // What shards have kept back may be the room. That nothing exceeds the limit *yet* is none.
        self.flush_bytes();
        if self.lacks(growth(self, row, db, args)) {
            return Err(CommandError::OUT_OF_MEMORY);
        }
        Ok(())
    }

    /// Evicts until there is room for `incoming` bytes.
    fn evict(&self, incoming: usize, now: &Now) -> End {
        let choice = Choice {
            policy: self.rules().policy(),
            recency: self.recency(),
            samples: self.rules().maxmemory_samples.load(Relaxed),
        };
        let mut garbage = Vec::new();
        // From here on shard after shard, whoever else searches: none is passed over.
        let first = self.eviction_turn.fetch_add(1, Relaxed) as usize;
        let mut search = Search {
            brought: incoming,
            began_ns: self.hooks.stopwatch_ns(),
            visits: 0,
            bare: 0,
            freed: 0,
        };
        let end = loop {
            if !self.lacks(incoming) {
                break End::Enough;
            }
            if let Some(end) = search.end(self.shards(), self.hooks.stopwatch_ns()) {
                break end;
            }
            let shard = first.wrapping_add(search.visits) % self.shards();
            search.note(self.evict_in(shard, incoming, now, &choice, &mut garbage));
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
        let before = self.used_memory() as i64;
        let is_due = now.reached(self.shards[shard].next_deadline());
        let due = is_due.then(|| self.expire_due(shard, now, DUE_PER_VISIT).fired);
        let mut hold = self.shards[shard].lock();
        // What was kept back has not been freed now.
        hold.flush_bytes();
        if due.is_some_and(|fired| fired > 0) {
            // What others do meanwhile is in it too; that is little.
            return Visit::Freed(before - self.used_memory() as i64);
        }
        let since = self.hooks.stopwatch_ns();
        let (mut visit, mut freed) = (Visit::Bare, 0);
        for _ in 0..VICTIMS_PER_VISIT {
            let (db, slot) = match hold.victim(choice, now.time.tick) {
                Ok(found) => found,
                Err(candidates) => {
                    if visit == Visit::Bare {
                        visit = tidy_for_want(&mut hold, candidates);
                    }
                    break;
                }
            };
            garbage.extend(hold.evict(db, slot));
            hold.tidy(db, TIDY_PER_VICTIM);
            freed -= hold.flush_bytes();
            visit = Visit::Freed(freed);
            if !self.lacks(incoming) {
                break;
            }
        }
        self.record_hold(since);
        visit
    }
}

/// Looks for room in a shard in which no victim was met.
#[cold]
fn tidy_for_want(hold: &mut Hold<'_>, candidates: bool) -> Visit {
    let freed = hold.give_back_empty();
    if candidates {
        // Timer records of keys that are gone lie in the way.
        hold.tidy_timers();
    }
    match (freed, candidates) {
        (1.., _) => Visit::Freed(freed),
        (_, true) => Visit::Missed,
        (_, false) => Visit::Bare,
    }
}
