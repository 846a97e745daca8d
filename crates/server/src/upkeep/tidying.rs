//! Tidying: moves what is left in changed shards together, some time later, and gives memory back.
//!
//! 1. A loop that has run commands or expiry tells all loops now and then, because it may have
//!    changed any shard.
//! 2. A loop that was told waits a little, and longer while keys expire: entries that are about to
//!    expire are not worth moving.
//! 3. It tidies its shards one after the other: a slice in each turn, more when it is idle.
//! 4. It stops when all of them in a row had nothing to tidy.

use tidewheel_time::NEVER;

use crate::state::loop_state::LoopState;
use crate::time::clock;
use crate::upkeep::shards::LoopShards;

/// The time from the first change until shards are tidied.
const TIDY_AFTER_MS: u64 = 100;

/// The time without expiry that tidying waits for: entries that are about to expire are not worth
/// moving.
const CALM_MS: u64 = 300;

/// The longest time that tidying waits for that.
const TIDY_WAIT_MAX_MS: u64 = 2_000;

/// Units of tidying in one hold of a shard's lock.
const TIDY_BUDGET: u32 = 64;

/// Tidying between two looks at the sockets when there is nothing else to do.
const TIDY_US: u64 = 100;

/// One loop's part in tidying.
#[derive(Debug)]
pub(crate) struct Tidying {
    own: LoopShards,
    /// The tick at which the next round begins; [`NEVER`] if nothing has changed.
    begins_at: u64,
    /// The tick at which that round was asked for.
    untidy_since: u64,
    /// The position at which the round goes on.
    next: usize,
    /// Shards in a row that had nothing to tidy.
    tidied: usize,
    /// Commands or expiry have run since the loops were told.
    active: bool,
    /// The tick from which on the loops may be told again.
    tell_at: u64,
}

impl Tidying {
    pub(crate) fn new(own: LoopShards) -> Self {
        Self {
            own,
            begins_at: NEVER,
            untidy_since: 0,
            next: 0,
            tidied: 0,
            active: false,
            tell_at: 0,
        }
    }

    /// Returns the tick at which there is something to do.
    pub(crate) fn wake_at(&self) -> u64 {
        self.begins_at
    }

    /// Commands or expiry have run, on shards of any loop.
    pub(crate) fn note_activity(&mut self) {
        self.active = true;
    }

    /// Does a turn's share. `idle`: the loop has nothing else to do. A key last expired at
    /// `expired_at`.
    pub(crate) fn tidy(&mut self, state: &mut LoopState, idle: bool, expired_at: u64) {
        let now = state.time.tick;
        self.tell_loops(state);
        if self.begins_at == NEVER && state.handle().was_untidy() {
            self.untidy_since = now;
            self.begins_at = now + TIDY_AFTER_MS;
        }
        if self.begins_at > now {
            return;
        }
        let patient = now < self.untidy_since + TIDY_WAIT_MAX_MS;
        if patient && now < expired_at + CALM_MS {
            self.begins_at = expired_at + CALM_MS;
            return;
        }
        self.tidy_shards(state, idle);
    }

    fn tell_loops(&mut self, state: &LoopState) {
        let now = state.time.tick;
        if self.active && now >= self.tell_at {
            self.active = false;
            self.tell_at = now + TIDY_AFTER_MS;
            let shards = state.server.keyspace.shards();
            for handle in state.server.loops.iter().take(shards) {
                handle.becomes_untidy();
            }
        }
    }

    fn tidy_shards(&mut self, state: &mut LoopState, idle: bool) {
        let end = clock::micros(state.time) + TIDY_US;
        loop {
            let shard = self.own.get(self.next);
            let (keyspace, seat) = (&state.server.keyspace, &mut state.seat);
            let more = keyspace.maintain(seat, shard, TIDY_BUDGET);
            self.tidied = if more { 0 } else { self.tidied + 1 };
            self.next = (self.next + 1) % self.own.count;
            if self.tidied >= self.own.count {
                self.tidied = 0;
                self.begins_at = NEVER;
                return;
            }
            state.time = state.server.clock.now();
            if !idle || clock::micros(state.time) >= end {
                return;
            }
        }
    }
}
