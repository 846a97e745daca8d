//! Snapshots in the background: each loop walks over its own shards, a slice in each turn.
//!
//! A slice is short, so that requests that come meanwhile hardly wait. There is one in each tick,
//! and a few in one of a loop that has nothing else to do. It leaves the rest of the tick to
//! whoever wants the processor: where clients share it, one that walked on held them up by tens of
//! milliseconds.
//!
//! The first loop also looks, once a second, whether a snapshot is due by a save point.

use std::collections::VecDeque;
use std::sync::Arc;

use tidewheel_keyspace::Walked;
use tidewheel_time::NEVER;

use crate::persistence::{self, log};
use crate::state::loop_state::LoopState;
use crate::time::clock;
use crate::upkeep::shards::LoopShards;

/// Entries that are walked over in one hold of a shard's lock.
const ENTRIES: usize = 32;

/// Microseconds of a slice.
const SLICE_US: u64 = 100;

/// Slices in a tick in which there is nothing else to do.
const IDLE_SLICES: u32 = 4;

/// Ticks after which shards that are shown are looked at again.
const AGAIN_MS: u64 = 10;

/// Ticks between two looks at the save points.
const LOOK_MS: u64 = 1_000;

/// One loop's part in snapshots.
#[derive(Debug)]
pub(crate) struct LoopSnapshot {
    own: LoopShards,
    /// The number of the last one whose walk has begun.
    begun: u64,
    /// The positions of the shards that are not shown yet, the next one first.
    left: VecDeque<usize>,
    /// When all are shown, they are looked at again: a collection may move to one of them. The last
    /// time is when the snapshot has ended.
    looks_again: bool,
    /// The tick at which the walk goes on.
    goes_on_at: u64,
    /// Slices one after the other.
    slices: u32,
    /// The tick of the next look at the save points.
    look_at: u64,
}

impl LoopSnapshot {
    pub(crate) fn new(own: LoopShards, begun: u64) -> Self {
        Self {
            left: VecDeque::new(),
            own,
            begun,
            looks_again: false,
            goes_on_at: 0,
            slices: 0,
            look_at: 0,
        }
    }

    /// Returns the tick at which there is something to do.
    pub(crate) fn wake_at(&self, state: &LoopState) -> u64 {
        let walks = !self.left.is_empty() || self.looks_again || self.has_begun(state);
        let walk = if walks { self.goes_on_at } else { NEVER };
        walk.min(self.looks_at(state))
    }

    fn has_begun(&self, state: &LoopState) -> bool {
        self.begun != state.server.snapshots.begun()
    }

    /// Does a turn's share. `idle`: the loop has nothing else to do.
    #[inline]
    pub(crate) fn work(&mut self, state: &mut LoopState, idle: bool) {
        if self.wake_at(state) <= state.time.tick {
            self.work_now(state, idle);
        }
    }

    #[cold]
    fn work_now(&mut self, state: &mut LoopState, idle: bool) {
        if self.looks_at(state) <= state.time.tick {
            self.look(state);
        }
        let begun = state.server.snapshots.begun();
        if self.begun != begun || self.left.is_empty() && self.looks_again {
            self.begun = begun;
            self.left = (0..self.own.count).collect();
            self.looks_again = state.server.snapshots.background().is_some();
        }
        let end = clock::micros(state.time) + SLICE_US;
        self.slices += 1;
        self.goes_on_at = state.time.tick;
        if !idle || self.slices == IDLE_SLICES {
            self.slices = 0;
            self.goes_on_at += 1;
        }
        let mut waiting = 0;
        while let Some(at) = self.left.pop_front() {
            let keyspace = &state.server.keyspace;
            match keyspace.walk_snapshot(&mut state.seat, self.own.get(at), ENTRIES) {
                Walked::More => {
                    waiting = 0;
                    self.left.push_front(at);
                }
                Walked::Done => waiting = 0,
                // Others may have to go on first, also of this loop.
                Walked::Waits => {
                    waiting += 1;
                    self.left.push_back(at);
                    if waiting >= self.left.len() {
                        return;
                    }
                }
            }
            state.time = state.server.clock.now();
            if clock::micros(state.time) >= end {
                return;
            }
        }
        self.goes_on_at = state.time.tick + AGAIN_MS;
    }

    fn looks_at(&self, state: &LoopState) -> u64 {
        let looks = state.settings.save_points.are_any() || state.server.log.is_on();
        match state.index == 0 && looks {
            true => self.look_at,
            false => NEVER,
        }
    }

    /// Begins a snapshot, or a new base of the log, if one is due.
    fn look(&mut self, state: &mut LoopState) {
        self.look_at = state.time.tick + LOOK_MS;
        let (server, time) = (Arc::clone(&state.server), state.time);
        if server.is_loading() || server.pause.is_on() || server.snapshots.background().is_some() {
            return;
        }
        let changes = server.keyspace.stats(time).changes;
        let points = &state.settings.save_points;
        let rewrites = log::is_due(&server, &state.settings, time.tick);
        if !rewrites && !server.snapshots.is_due(points, time.tick, changes) {
            return;
        }
        let Ok(no_long) = server.keyspace.without_long_commands() else {
            // The next look tries again.
            return;
        };
        if let Ok(alone) = no_long.alone(&mut state.seat) {
            // They have told why they could not.
            let _ = match rewrites {
                true => log::rewrite(&server, &alone, time),
                false => persistence::begin(&server, &alone, time),
            };
        }
    }
}
