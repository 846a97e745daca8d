//! Upkeep of a shard, which changes no data: bytes, deadlines, access history, tidying.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_store::{Seen, Slot};

use super::{Database, Hold, NEVER, ShardState, WAKE};
use crate::access::Recency;
use crate::candidates::{Candidates, NoVictim};
use crate::eviction::NOTHING;
use crate::eviction::VictimChoice;
use crate::rules::Rules;

/// A shard reports its bytes when they changed by this much: the total is off by at most this times
/// the number of shards.
pub(super) const BYTES_STEP: i64 = 4096;

/// Units of tidying for a search that meets too many timer records of keys that are gone.
const TIMER_TIDYING: u32 = 64;

impl Hold<'_> {
    /// Tells other threads how urgent the shard's first candidate is.
    pub(crate) fn publish_urgency(&mut self) {
        let urgency = self.candidates.urgency();
        self.shard.urgency.store(urgency, Relaxed);
    }

    /// Publishes the earliest of the databases' bounds.
    pub(crate) fn publish_due(&mut self) {
        let shard = self.shard;
        let state = &mut *self.state;
        let earliest = state.due.iter().copied().min().unwrap_or(NEVER);
        if earliest != state.published {
            if earliest < state.published {
                state.after |= WAKE;
            }
            state.published = earliest;
            shard.next_deadline.store(earliest, Relaxed);
        }
    }

    /// Lowers the published bound after an entry was given a deadline.
    ///
    /// The bound is the wheel's, which may be before the deadline: a slot of many records asks to
    /// be split ahead of its start. Without a new record it is as it was: most deadlines move
    /// later, and file none.
    #[inline]
    pub(super) fn note_deadline(&mut self, db: u32, slot: Slot, deadline: u64) {
        let database = &self.state.databases[db as usize];
        if database.noted != database.entries.filed() {
            self.note_filed(db, slot, deadline);
        }
    }

    fn note_filed(&mut self, db: u32, slot: Slot, deadline: u64) {
        let shard = self.shard;
        let state = &mut *self.state;
        if state.candidates.wants_deadline(deadline) {
            // It may have to go before all that was found.
            state.candidates.offer(deadline, db, slot);
            let urgency = state.candidates.urgency();
            shard.urgency.store(urgency, Relaxed);
        }
        let database = &mut state.databases[db as usize];
        database.noted = database.entries.filed();
        let next = database.entries.next_deadline();
        let deadline = next.unwrap_or(NEVER);
        let due = &mut state.due[db as usize];
        *due = deadline.min(*due);
        if deadline < state.published {
            state.published = deadline;
            state.after |= WAKE;
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

    /// Reports all bytes that were not yet reported, so that the total is exact. Returns by how
    /// much it changed.
    pub(crate) fn flush_bytes(&mut self) -> i64 {
        let change = std::mem::take(&mut self.state.unflushed_bytes);
        self.shard.shared.used_bytes.fetch_add(change, Relaxed);
        change
    }

    /// Tidies a database, at most about `budget` units of work. Returns whether more is worth
    /// doing. A database that turns out empty gives its memory back.
    pub(crate) fn tidy(&mut self, db: u32, budget: u32) -> bool {
        let state = &mut *self.state;
        let entries = &mut state.databases[db as usize].entries;
        let more = if state.candidates.go_by_deadline() {
            let mut moved = Vec::new();
            let more = entries.maintain_and_tell(budget, |_, to| moved.push(to));
            state.candidates.follow(db, entries, &moved);
            more
        } else {
            entries.maintain(budget)
        };
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

    /// The entry of all databases that is evicted next, as far as is known: (database, slot). One
    /// that is less urgent than `until` stays.
    pub(crate) fn victim(
        &mut self,
        choice: &VictimChoice,
        clock: u64,
        until: u64,
    ) -> Result<(u32, Slot), NoVictim> {
        if !choice.has_order() {
            return self.any_victim(choice, clock);
        }
        let candidates = self.search(choice, clock);
        let mut known = std::mem::take(&mut self.candidates);
        let mut met = Err(NoVictim::Nothing { candidates });
        while let Some(candidate) = known.pop() {
            if candidate.urgency > until {
                known.offer(candidate.urgency, candidate.db, candidate.slot());
                met = Err(NoVictim::LessUrgent);
                break;
            }
            let (db, slot) = (candidate.db, candidate.slot());
            let entries = self.entries(db);
            let now = match entries.is_in_use(slot) {
                true => choice.urgency(entries, slot, clock),
                false => None,
            };
            match now {
                Some(urgency) if urgency <= candidate.urgency => {
                    met = Ok((db, slot));
                    break;
                }
                Some(urgency) => known.offer(urgency, db, slot),
                None => {}
            }
        }
        self.candidates = known;
        if met == Err(NoVictim::Nothing { candidates }) {
            self.eviction_turn = self.eviction_turn.wrapping_add(1);
        }
        met
    }

    /// True if a candidate is known that is at least as urgent as `until`.
    pub(crate) fn is_most_urgent(&self, until: u64) -> bool {
        let urgency = self.candidates.urgency();
        urgency != NOTHING && urgency <= until
    }

    /// As [`victim`](Self::victim), if one is as good as another.
    fn any_victim(&mut self, choice: &VictimChoice, clock: u64) -> Result<(u32, Slot), NoVictim> {
        let Self {
            databases,
            random,
            eviction_turn,
            ..
        } = self;
        let (mut met, mut any) = (None, false);
        for (db, database) in (0..).zip(databases.iter()) {
            let entries = &database.entries;
            if met.is_none() && choice.has_candidates(entries, database.with_deadline()) {
                any = true;
                choice.draw(entries, clock, random, *eviction_turn, |slot, _| {
                    met = met.or(Some((db, slot)));
                });
            }
        }
        met.ok_or_else(|| {
            *eviction_turn = eviction_turn.wrapping_add(1);
            NoVictim::Nothing { candidates: any }
        })
    }

    /// Looks for candidates for some time. Returns whether there are any entries that may be
    /// evicted.
    pub(crate) fn search(&mut self, choice: &VictimChoice, clock: u64) -> bool {
        let timed = self.databases.iter().map(Database::with_deadline).sum();
        let mut known = std::mem::take(&mut self.candidates);
        known.prepare(choice, timed);
        let any = match choice.goes_by_deadline() {
            true => {
                let databases = self.databases.iter();
                let chunks = databases
                    .map(|database| database.entries.timer_chunks())
                    .sum();
                let chunks = known.chunks_to_read(chunks);
                self.read_deadlines(choice, &mut known, chunks, clock);
                timed > 0
            }
            false => self.draw(choice, &mut known, clock),
        };
        self.candidates = known;
        any
    }

    /// Reads some timer records, from where the last call has stopped.
    fn read_deadlines(
        &self,
        choice: &VictimChoice,
        known: &mut Candidates,
        mut left: u32,
        clock: u64,
    ) {
        let count = self.databases();
        // Each database at most once.
        for _ in 0..=count {
            let (db, from) = known.place;
            let entries = self.entries(db % count);
            let next = entries.scan_timed(from, left, |slot, tick| {
                if known.wants(tick)
                    && entries.is_in_use(slot)
                    && let Some(urgency) = choice.urgency(entries, slot, clock)
                {
                    known.offer(urgency, db % count, slot);
                }
            });
            if let Some(next) = next {
                known.place = (db % count, next);
                break;
            }
            known.all_read |= db + 1 >= count;
            known.place = ((db + 1) % count, 0);
            // Each database counts as one chunk at least.
            let read = entries.timer_chunks().saturating_sub(from);
            left = left.saturating_sub(read.max(1));
            if left == 0 {
                break;
            }
        }
    }

    /// Draws some entries at random.
    fn draw(&mut self, choice: &VictimChoice, known: &mut Candidates, clock: u64) -> bool {
        let Self {
            databases,
            random,
            eviction_turn,
            ..
        } = self;
        let mut any = false;
        for (db, database) in (0..).zip(databases.iter()) {
            let entries = &database.entries;
            if choice.has_candidates(entries, database.with_deadline()) {
                any = true;
                choice.draw(entries, clock, random, *eviction_turn, |slot, urgency| {
                    known.offer(urgency, db, slot);
                });
            }
        }
        any
    }
}
