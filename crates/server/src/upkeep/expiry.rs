//! Expires keys within a turn, in bounded passes over the loop's shards, and helps loops that are
//! behind.
//!
//! A *pass* goes over the loop's own shards in rotation. It expires a bounded number of keys per
//! hold of a shard's lock, and publishes the events of each hold before the next. It ends when
//! nothing is due or its microseconds are spent. Then the loop looks at the sockets, and the next
//! pass goes on where this one stopped. So a backlog never starves, and a request never waits for
//! more than one pass.
//!
//! While deadlines are met nearly in time, a pass may take `expiry-turn-us`. The further the loop
//! is behind, the more it may take, up to the time that was spent on clients since the pass before.
//! At fifty milliseconds behind, a saturated loop gives expiry half of its time.
//!
//! A loop that is behind wakes one that sleeps. A loop that has nothing to do helps those that are
//! behind, from the other end of their shards. Then it publishes their next deadline, since a loop
//! that is stuck in a long command cannot do so itself.
//!
//! A loop may have no shards at all, when there are more loops than shards. It serves and helps.

use tidewheel_time::NEVER;

use crate::counters::latency::LatencyEvent;
use crate::state::loop_state::LoopState;
use crate::time::clock;
use crate::upkeep::expired;
use crate::upkeep::guard;
use crate::upkeep::shards::LoopShards;

/// The most that a pass may take.
const PASS_MAX_US: u64 = 500;

/// The ticks behind at which a pass takes its greatest share. A few ticks are no reason to make
/// requests wait: a thread that is preempted is as late.
const BEHIND_FULL: u64 = 50;

/// The ticks behind at which others should help.
const HELP_AFTER: u64 = 1;

/// One loop's part in expiry.
#[derive(Debug)]
pub(crate) struct LoopExpiry {
    own: LoopShards,
    /// The position at which the next pass begins.
    at: usize,
    /// Engine microseconds at which the last pass ended.
    last_pass: u64,
    /// Keys expired so far.
    expired: u64,
    /// The tick at which a key last expired.
    expired_at: u64,
    /// Shards were visited since the last [`take_activity`](Self::take_activity).
    has_run: bool,
}

/// The end of a pass over one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PassEnd {
    /// Nothing is due any more.
    Done,
    /// Something is due, but nothing was done: the shard is not tried again within this tick.
    Idle,
    /// The time was spent first.
    Spent,
}

impl LoopExpiry {
    pub(crate) fn new(own: LoopShards) -> Self {
        Self {
            own,
            at: 0,
            last_pass: 0,
            expired: 0,
            expired_at: 0,
            has_run: false,
        }
    }

    /// Returns true if expiry has something to do at once.
    pub(crate) fn has_work(&self, state: &LoopState) -> bool {
        state.handle().soonest() <= state.time.tick || find_late_loop(state).is_some()
    }

    /// Returns true if something is due, but for less than a tick.
    pub(crate) fn is_in_time(&self, state: &LoopState) -> bool {
        let (now, soonest) = (state.time.tick, state.handle().soonest());
        soonest <= now && now - soonest < HELP_AFTER
    }

    /// Returns the tick at which expiry has something to do.
    pub(crate) fn wake_at(state: &LoopState) -> u64 {
        state.handle().soonest().min(guard::wake_at(state))
    }

    /// Returns true if shards were visited since the last call.
    pub(crate) fn take_activity(&mut self) -> bool {
        std::mem::take(&mut self.has_run)
    }

    /// Returns the tick at which a key last expired.
    pub(crate) fn expired_at(&self) -> u64 {
        self.expired_at
    }

    /// Runs one pass over the keys that are due.
    pub(crate) fn expire(&mut self, state: &mut LoopState) {
        let handle = state.handle();
        let now = state.time.tick;
        let soonest = handle.soonest();
        if soonest > now {
            if find_late_loop(state).is_some() && state.server.expires() {
                self.help(state);
            }
            return;
        }
        if !state.server.expires() {
            return;
        }
        let end = self.pass_ends(state, now - soonest);
        handle.forget_soonest();
        let (own, first) = (self.own, self.at);
        let shards = (0..own.count).map(|step| own.get(first + step));
        let began_us = clock::micros(state.time);
        let (next, spent) = self.pass(state, shards, end);
        let took_us = clock::micros(state.time).saturating_sub(began_us);
        state.tally.expiry_us += took_us;
        state.note_event(LatencyEvent::ExpireCycle, took_us);
        if let Some(steps) = spent {
            self.at = (first + steps) % own.count;
            state.tally.budget_hits += 1;
        }
        state.handle().remember_soonest(next);
        self.last_pass = clock::micros(state.time);
        if spent.is_some() && state.time.tick.saturating_sub(next) >= HELP_AFTER {
            wake_helper(state);
        }
    }

    /// Returns the engine microsecond at which a pass ends. The loop is `behind` its deadlines by
    /// this many ticks.
    fn pass_ends(&self, state: &LoopState, behind: u64) -> u64 {
        let begins = clock::micros(state.time);
        let served = begins.saturating_sub(self.last_pass).min(PASS_MAX_US);
        let share = served * behind.min(BEHIND_FULL) / BEHIND_FULL;
        begins + share.max(state.settings.expiry_turn_us)
    }

    /// Expires what is due in `shards`, one after the other, until `end`. Returns the earliest
    /// deadline that is left, and at which of the shards the time was spent.
    fn pass(
        &mut self,
        state: &mut LoopState,
        shards: impl Iterator<Item = usize>,
        end: u64,
    ) -> (u64, Option<usize>) {
        let mut next = NEVER;
        let mut spent = None;
        for (step, shard) in shards.enumerate() {
            let mut deadline = state.server.keyspace.next_deadline(shard);
            if spent.is_none() && deadline <= state.time.tick {
                let pass = self.expire_shard(state, shard, end);
                deadline = state.server.keyspace.next_deadline(shard);
                match pass {
                    PassEnd::Done => {}
                    PassEnd::Idle => deadline = deadline.max(state.time.tick + 1),
                    PassEnd::Spent => spent = Some(step),
                }
            }
            next = next.min(deadline);
        }
        (next, spent)
    }

    /// Expires what is due in one shard.
    fn expire_shard(&mut self, state: &mut LoopState, shard: usize, end: u64) -> PassEnd {
        while state.server.keyspace.next_deadline(shard) <= state.time.tick {
            let (keyspace, keys) = (&state.server.keyspace, state.settings.expiry_hold_keys);
            let progress = keyspace.expire(&mut state.seat, shard, state.time, keys);
            self.expired += u64::from(progress.fired);
            if progress.fired > 0 {
                self.expired_at = state.time.tick;
            }
            self.has_run = true;
            state.server.publish_events();
            state.time = state.server.clock.now();
            expired::append_until(state, end);
            if clock::micros(state.time) >= end {
                return PassEnd::Spent;
            }
            if progress.fired == 0 && progress.moved == 0 {
                return PassEnd::Idle;
            }
        }
        PassEnd::Done
    }

    /// Runs a pass over the shards of a loop that is behind, from their other end.
    fn help(&mut self, state: &mut LoopState) {
        let Some(whom) = find_late_loop(state) else {
            return;
        };
        let began_us = clock::micros(state.time);
        let end = began_us + state.settings.expiry_turn_us;
        let loops = state.server.loops.len();
        let theirs = LoopShards::of(whom, loops, state.server.keyspace.shards());
        let before = self.expired;
        let shards = (0..theirs.count).rev().map(|at| theirs.get(at));
        let (_, spent) = self.pass(state, shards, end);
        state.tally.helped += self.expired - before;
        state.tally.expiry_us += clock::micros(state.time).saturating_sub(began_us);
        // A whole pass did not remove what is still due: it is not tried again within this tick.
        let floor = match spent {
            Some(_) => 0,
            None => state.time.tick + 1,
        };
        let keyspace = &state.server.keyspace;
        state.server.loops[whom].correct_soonest(|| {
            let deadlines = (0..theirs.count).map(|at| keyspace.next_deadline(theirs.get(at)));
            deadlines.min().unwrap_or(NEVER).max(floor)
        });
    }
}

/// Returns a loop that is behind, other than this one.
fn find_late_loop(state: &LoopState) -> Option<usize> {
    let late = state.time.tick - HELP_AFTER;
    let mut others = state.server.loops.iter().enumerate();
    others
        .find(|(i, other)| *i != state.index && other.soonest() <= late)
        .map(|(i, _)| i)
}

fn wake_helper(state: &LoopState) {
    if let Some(sleeper) = guard::others(state).find(|other| other.sleeps()) {
        sleeper.nudge();
    }
}
