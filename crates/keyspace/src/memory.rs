//! `maxmemory`: evicts before a command that may add data, and while no command runs.
//!
//! For example, the limit is 100 MB, 103 MB are used, and a command brings 1 MB:
//!
//! 1. The command must free the 1 MB that it brings, even if that takes ten thousand victims of a
//!    hundred bytes. Only a guard of a second bounds it. So memory never grows beyond the limit by
//!    what is written.
//! 2. The other 3 MB it works at for a millisecond at most. Then it runs, and the limit has come
//!    nearer.
//! 3. If it could not free 1 MB, and would not fit, it is refused.
//!
//! Bytes that are still above the limit ([`exceeds_limit`](Keyspace::exceeds_limit)) are left to
//! the next commands and to [`shrink`](Keyspace::shrink).

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_resp::Args;

use crate::candidates::{NoVictim, UNKNOWN};
use crate::demand::{Demand, growth};
use crate::error::CommandError;
use crate::eviction::NOTHING;
use crate::eviction::{Policy, VictimChoice};
use crate::gate::Seat;
use crate::keyspace::Keyspace;
use crate::rows::Command;
use crate::shard::{Hold, Shard};
use crate::time::{Now, Time};
use crate::value::Object;

/// The time for which a command goes on evicting after it has freed as much as it brings.
const SHORT_NS: u64 = 1_000_000;

/// The most time in which a command frees as much as it brings: a guard against very slow machines.
const LONG_NS: u64 = 1_000_000_000;

/// The most visits of shards for one command, in case the stopwatch stands still. To these comes
/// one visit for every [`BYTES_PER_VISIT`] that the command brings.
const VISITS_MAX: usize = 1 << 16;

/// Bytes that nearly every visit frees at least.
const BYTES_PER_VISIT: usize = 64;

/// The most victims of one visit, under one hold of the shard's lock.
const VICTIMS_PER_VISIT: usize = 8;

/// Due entries that one visit of a shard removes before it looks for a victim.
const DUE_PER_VISIT: u32 = 64;

/// Shards of which nothing is known that a search looks at before it evicts: a first look takes
/// long.
const FIRST_LOOKS: usize = 8;

/// Units of tidying after a victim is gone, so that its page goes back too.
const TIDY_PER_VICTIM: u32 = 16;

/// The outcome of a visit to a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VisitOutcome {
    /// The shard has no entry that may be evicted.
    Bare,
    /// It has one, but it was not found, or others are more urgent.
    Missed,
    /// Bytes that were freed. Negative if an entry moved and took more than was freed.
    Freed(i64),
}

/// The reason why the search for victims has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchEnd {
    /// There is room.
    Enough,
    /// As much was freed as the command brings, but the limit is still exceeded.
    Covered,
    /// No entry may be evicted any more.
    Bare,
    /// It took too long.
    Spent,
}

/// The bounds and the progress of a search for victims.
struct VictimSearch {
    brought: usize,
    began_ns: u64,
    visits: usize,
    /// Visits since the last one that found an entry which may be evicted.
    bare: usize,
    freed: i64,
    /// True if shards with due entries are visited for these.
    meets_due: bool,
    /// Shards of which nothing was known.
    first_looks: usize,
}

/// The shard where victims are looked for.
#[derive(Debug, Clone, Copy)]
struct EvictionTarget {
    shard: usize,
    /// The urgency of the first candidate elsewhere: less urgent ones stay.
    until: u64,
    /// True if nothing is known of the shard.
    is_first_look: bool,
}

impl VictimSearch {
    /// True if as much was freed as the command brings.
    fn is_covered(&self) -> bool {
        self.freed >= self.brought as i64
    }

    /// True if a shard of which nothing is known may be looked at: one more for each visit that was
    /// for a victim.
    fn may_look(&self) -> bool {
        2 * self.first_looks < FIRST_LOOKS + self.visits
    }

    /// The reason to end the search here; `None` if it goes on.
    fn end(&self, shards: usize, now_ns: u64) -> Option<SearchEnd> {
        if self.bare == shards {
            return Some(SearchEnd::Bare);
        }
        let passed = now_ns.saturating_sub(self.began_ns);
        let too_many = self.visits >= VISITS_MAX + self.brought / BYTES_PER_VISIT;
        if self.visits > 0 && self.is_covered() && (passed >= SHORT_NS || too_many) {
            return Some(SearchEnd::Covered);
        }
        (passed >= LONG_NS || too_many).then_some(SearchEnd::Spent)
    }

    fn note(&mut self, visit: VisitOutcome) {
        self.visits += 1;
        self.bare = if visit == VisitOutcome::Bare {
            self.bare + 1
        } else {
            0
        };
        if let VisitOutcome::Freed(bytes) = visit {
            self.freed += bytes;
        }
    }
}

impl Keyspace {
    /// True if there is a `maxmemory`.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.rules().maxmemory.load(Relaxed) != 0
    }

    /// True if `incoming` bytes more would exceed `maxmemory`.
    #[inline]
    pub(crate) fn lacks(&self, incoming: usize) -> bool {
        let limit = self.rules().maxmemory.load(Relaxed);
        limit != 0 && self.used_memory() + incoming as u64 > limit
    }

    /// True if more than `maxmemory` is used, whatever the policy. Lock-free.
    #[must_use]
    pub fn is_above_limit(&self) -> bool {
        self.lacks(0)
    }

    /// True if more than `maxmemory` is used and the policy may evict. Then
    /// [`shrink`](Self::shrink) is worth calling. Lock-free.
    #[must_use]
    pub fn exceeds_limit(&self) -> bool {
        self.lacks(0) && self.rules().policy() != Policy::NoEviction
    }

    /// True if more than `maxmemory` is used, with `incoming` bytes, and the policy evicts nothing.
    /// Lock-free.
    #[must_use]
    pub fn is_full(&self, incoming: usize) -> bool {
        self.lacks(incoming) && self.rules().policy() == Policy::NoEviction
    }

    /// Evicts for a short time, if more than `maxmemory` is used: the limit was lowered, or
    /// exceeded, and no command that writes comes to make room. Returns whether another call would
    /// free more. Exclusive users that wait go first.
    pub fn shrink(&self, seat: &mut Seat, time: Time) -> bool {
        if !seat.try_give_way() && seat.is_shut_out() {
            return false;
        }
        let _visit = seat.visit();
        if self.is_paused() {
            return false;
        }
        // A few keys may be all there is, fewer bytes than a shard reports by itself.
        self.flush_bytes();
        self.lacks(0)
            && self.evict(0, &Now::of(&self.timeline, time)) == SearchEnd::Covered
            && self.lacks(0)
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
        let passed_ns = self.hooks.stopwatch_ns().saturating_sub(began_ns);
        seat.delay(passed_ns);
        made.map(|()| Now::of(&self.timeline, now.time.after(passed_ns)))
    }

    /// As [`make_room_for`](Self::make_room_for), for `bytes` bytes. Nothing may be locked.
    #[cold]
    pub(crate) fn make_room_for_bytes(
        &self,
        seat: &mut Seat,
        bytes: usize,
        now: &Now,
    ) -> Result<Now, CommandError> {
        let began_ns = self.hooks.stopwatch_ns();
        let fits = bytes as u64 <= self.rules().maxmemory.load(Relaxed);
        let made = fits
            && matches!(
                self.evict(bytes, now),
                SearchEnd::Enough | SearchEnd::Covered
            );
        if !made {
            self.flush_bytes();
        }
        let passed_ns = self.hooks.stopwatch_ns().saturating_sub(began_ns);
        seat.delay(passed_ns);
        if !made && self.lacks(bytes) {
            return Err(CommandError::OUT_OF_MEMORY);
        }
        Ok(Now::of(&self.timeline, now.time.after(passed_ns)))
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
            // It would not fit into an empty keyspace.
            return Err(CommandError::OUT_OF_MEMORY);
        }
        let end = self.evict(demand.added, now);
        if matches!(end, SearchEnd::Enough | SearchEnd::Covered) {
            return Ok(());
        }
        // The total may be too high by what shards have not reported. Only room for the command
        // counts as room: it is not enough that the limit is not exceeded *yet*.
        self.flush_bytes();
        if self.lacks(growth(self, row, db, args)) {
            return Err(CommandError::OUT_OF_MEMORY);
        }
        Ok(())
    }

    /// Evicts until there is room for `incoming` bytes.
    fn evict(&self, incoming: usize, now: &Now) -> SearchEnd {
        let choice = VictimChoice {
            policy: self.rules().policy(),
            recency: self.recency(),
            samples: self.rules().maxmemory_samples.load(Relaxed),
        };
        let mut garbage = Vec::new();
        // Each search starts one shard further and visits all, so that no shard is passed over.
        let first = self.eviction_turn.fetch_add(1, Relaxed) as usize;
        let mut search = VictimSearch {
            brought: incoming,
            began_ns: self.hooks.stopwatch_ns(),
            visits: 0,
            bare: 0,
            freed: 0,
            meets_due: true,
            first_looks: 0,
        };
        if choice.has_order() {
            self.look_at(first % self.shards(), &choice, now);
        }
        let end = loop {
            if !self.lacks(incoming) {
                break SearchEnd::Enough;
            }
            if let Some(end) = search.end(self.shards(), self.hooks.stopwatch_ns()) {
                break end;
            }
            let next = first.wrapping_add(search.visits) % self.shards();
            let place = match choice.has_order() {
                true => self.most_urgent(next, now, &search),
                false => EvictionTarget {
                    shard: next,
                    until: NOTHING,
                    is_first_look: false,
                },
            };
            let visit = self.evict_in(place, incoming, now, &choice, &mut garbage);
            // A bound may be reached where nothing is removed. Then there is no use in asking
            // again.
            search.meets_due &= place.until != UNKNOWN || matches!(visit, VisitOutcome::Freed(_));
            search.first_looks += usize::from(place.is_first_look);
            search.note(visit);
        };
        self.discard(garbage);
        end
    }

    /// Looks for candidates in a shard, so that others know how urgent it is to evict there.
    fn look_at(&self, shard: usize, choice: &VictimChoice, now: &Now) {
        let before = self.eviction_policy.swap(choice.policy as u8, Relaxed);
        if before != choice.policy as u8 {
            self.shards.iter().for_each(Shard::forget_urgency);
        }
        if let Some(mut hold) = self.shards[shard].lock_briefly() {
            hold.search(choice, now.time.tick);
            hold.publish_urgency();
        }
    }

    /// Chooses the shard to evict in: one where something is due, else the one with the most urgent
    /// candidate, else `next`. Reads two numbers of each shard.
    fn most_urgent(&self, next: usize, now: &Now, search: &VictimSearch) -> EvictionTarget {
        let mut best = EvictionTarget {
            shard: next,
            until: NOTHING,
            is_first_look: false,
        };
        let mut least = NOTHING;
        // From what a long command has nothing is evicted.
        let shards = self.shards.iter().enumerate();
        for (number, shard) in shards.filter(|(_, shard)| !shard.is_busy()) {
            if search.meets_due && now.reached(shard.next_deadline()) {
                return EvictionTarget {
                    shard: number,
                    until: UNKNOWN,
                    is_first_look: false,
                };
            }
            let urgency = match shard.urgency() {
                UNKNOWN if !search.may_look() => NOTHING,
                urgency => urgency,
            };
            if urgency < least {
                best = EvictionTarget {
                    shard: number,
                    until: least,
                    is_first_look: urgency == UNKNOWN,
                };
                least = urgency;
            } else {
                best.until = best.until.min(urgency);
            }
        }
        best
    }

    /// Removes what is due in a shard, or else a few victims.
    fn evict_in(
        &self,
        place: EvictionTarget,
        incoming: usize,
        now: &Now,
        choice: &VictimChoice,
        garbage: &mut Vec<Object>,
    ) -> VisitOutcome {
        let shard = place.shard;
        let before = self.used_memory() as i64;
        let is_due = now.reached(self.shards[shard].next_deadline());
        let due = is_due.then(|| self.expire_due(shard, now, DUE_PER_VISIT).fired);
        // What a long command has is not evicted meanwhile.
        let Some(mut hold) = self.shards[shard].lock_briefly() else {
            return VisitOutcome::Bare;
        };
        let mut now = *now;
        hold.meet(&mut now);
        // What was not yet reported is not freed by this visit.
        hold.flush_bytes();
        if due.is_some_and(|fired| fired > 0) {
            // What other threads do meanwhile counts too; that is little.
            return VisitOutcome::Freed(before - self.used_memory() as i64);
        }
        let since = self.hooks.stopwatch_ns();
        let (mut visit, mut freed) = (VisitOutcome::Bare, 0);
        for _ in 0..VICTIMS_PER_VISIT {
            if visit != VisitOutcome::Bare
                && choice.has_order()
                && !hold.is_most_urgent(place.until)
            {
                break;
            }
            let (db, slot) = match hold.victim(choice, now.time.tick, place.until) {
                Ok(found) => found,
                Err(NoVictim::LessUrgent) => {
                    if visit == VisitOutcome::Bare {
                        visit = VisitOutcome::Missed;
                    }
                    break;
                }
                Err(NoVictim::Nothing { candidates }) => {
                    if visit == VisitOutcome::Bare {
                        visit = tidy_for_want(&mut hold, candidates);
                    }
                    break;
                }
            };
            garbage.extend(hold.evict(db, slot, &now));
            hold.tidy(db, TIDY_PER_VICTIM);
            freed -= hold.flush_bytes();
            visit = VisitOutcome::Freed(freed);
            if !self.lacks(incoming) {
                break;
            }
        }
        if choice.has_order() {
            hold.publish_urgency();
        }
        let invalid = (hold.after() != 0).then(|| hold.take_invalid());
        self.record_hold(since);
        if hold.has_ready() {
            self.serve_and_unlock(now, vec![(shard, hold)]);
        } else {
            drop(hold);
        }
        if let Some(invalid) = invalid {
            self.tell_invalid(None, invalid);
        }
        visit
    }
}

/// Tidies a shard in which no victim was found, to free memory or to find one next time.
#[cold]
fn tidy_for_want(hold: &mut Hold<'_>, candidates: bool) -> VisitOutcome {
    let freed = hold.give_back_empty();
    if candidates {
        // Samples found only timer records of keys that are gone.
        hold.tidy_timers();
    }
    match (freed, candidates) {
        (1.., _) => VisitOutcome::Freed(freed),
        (_, true) => VisitOutcome::Missed,
        (_, false) => VisitOutcome::Bare,
    }
}
