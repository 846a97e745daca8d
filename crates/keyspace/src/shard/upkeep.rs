//! What a shard does to its entries without changing data: bytes, deadlines, access history, tidying.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_store::{Seen, Slot};

use super::{Hold, NEVER, ShardState};
use crate::access::Recency;
use crate::eviction::Choice;
use crate::rules::Rules;

/// A shard reports its bytes when they changed by this much: the total is off by at most this times the
/// number of shards.
pub(super) const BYTES_STEP: i64 = 4096;

/// Units of tidying for a search that meets too many timer records of keys that are gone.
const TIMER_TIDYING: u32 = 64;

impl Hold<'_> {
    /// Publishes the earliest of the databases' bounds.
    pub(crate) fn publish_due(&mut self) {
        let shard = self.shard;
        let state = &mut *self.state;
        let earliest = state.due.iter().copied().min().unwrap_or(NEVER);
        if earliest != state.published {
            state.wake |= earliest < state.published;
            state.published = earliest;
            shard.next_deadline.store(earliest, Relaxed);
        }
    }

    /// Lowers the published bound after an entry was given a deadline.
    ///
    /// The bound is the wheel's, which may be before the deadline: a slot of many records asks to be
    /// split ahead of its start. Without a new record it is as it was: most deadlines move later, and file none.
    #[inline]
    pub(super) fn note_deadline(&mut self, db: u32) {
        let database = &self.state.databases[db as usize];
        if database.noted != database.entries.filed() {
            self.note_filed(db);
        }
    }

    fn note_filed(&mut self, db: u32) {
        let shard = self.shard;
        let state = &mut *self.state;
        let database = &mut state.databases[db as usize];
        database.noted = database.entries.filed();
        let next = database.entries.next_deadline();
        let deadline = next.unwrap_or(NEVER);
        let due = &mut state.due[db as usize];
        *due = deadline.min(*due);
        if deadline < state.published {
            state.published = deadline;
            state.wake = true;
            shard.next_deadline.store(deadline, Relaxed);
        }
    }

    /// Reports a database's bytes to the total.
    #[inline]
    pub(super) fn count_bytes(&mut self, db: u32) {
        let state = &mut *self.state;
        let database = &mut state.databases[db as usize];
        let bytes = database.bytes();
        let change = bytes as i64 - database.counted_bytes as i64;
        if change != 0 {
            database.counted_bytes = bytes;
            state.unflushed_bytes += change;
            if state.unflushed_bytes.abs() >= BYTES_STEP {
                self.flush_bytes();
            }
        }
    }

    /// Reports all bytes that were not yet reported, so that the total is exact. Returns by how much it changed.
    pub(crate) fn flush_bytes(&mut self) -> i64 {
        let change = std::mem::take(&mut self.state.unflushed_bytes);
        self.shard.shared.used_bytes.fetch_add(change, Relaxed);
        change
    }

    /// Tidies a database, at most about `budget` units of work. Returns whether more is worth doing. A database that
    /// turns out empty gives its memory back.
    pub(crate) fn tidy(&mut self, db: u32, budget: u32) -> bool {
        let more = self.state.databases[db as usize].entries.maintain(budget);
        if !more {
            self.give_back(db);
        }
        self.count_bytes(db);
        more
    }

    /// Gives back the memory of a database, if it is empty.
    fn give_back(&mut self, db: u32) {
        if self.state.databases[db as usize].entries.give_back() {
            self.state.due[db as usize] = NEVER;
        }
    }

    /// Gives back the memory of empty databases. Returns by how many bytes the total shrank.
    pub(crate) fn give_back_empty(&mut self) -> i64 {
        for db in 0..self.databases() {
            self.give_back(db);
            self.count_bytes(db);
        }
        -self.flush_bytes()
    }

    /// Drops some timer records of keys that are gone.
    pub(crate) fn tidy_timers(&mut self) {
        for db in 0..self.databases() {
            if self.entries(db).timed() > 0 {
                self.tidy(db, TIMER_TIDYING);
            }
        }
    }
}

impl ShardState {
    /// Notes an access to an entry that was just looked at.
    #[inline(always)]
    pub(crate) fn touch(&mut self, db: u32, seen: Seen, rules: &Rules, clock: u64) {
        let new = match rules.counts_frequency() {
            false => Recency::Clock.of_new(clock),
            true => self.after_hit(seen.access, rules, clock),
        };
        // A clean cache line stays clean.
        if new != seen.access {
            let entries = &mut self.databases[db as usize].entries;
            entries.set_access(seen.slot, new);
        }
    }

    /// The access history after one more access, where accesses are counted.
    #[inline(never)]
    fn after_hit(&mut self, old: u32, rules: &Rules, clock: u64) -> u32 {
        rules.recency().after_hit(old, clock, &mut self.random)
    }

    /// The entry of all databases that should be evicted first: (database, slot). If none was found, `Err` says
    /// whether there are any that may be evicted.
    pub(crate) fn victim(&mut self, choice: &Choice, clock: u64) -> Result<(u32, Slot), bool> {
        let (mut best, mut candidates) = (None, false);
        for (db, database) in (0..).zip(&self.databases) {
            let entries = &database.entries;
            if !choice.has_candidates(entries, database.with_deadline()) {
                continue;
            }
            candidates = true;
            let found = choice.victim(entries, clock, &mut self.random, self.eviction_turn);
            if let Some((slot, score)) = found
                && best.is_none_or(|(_, _, top)| score > top)
            {
                best = Some((db, slot, score));
            }
        }
        let met = best.map(|(db, slot, _)| (db, slot));
        met.ok_or_else(|| {
            self.eviction_turn = self.eviction_turn.wrapping_add(1);
            candidates
        })
    }
}
