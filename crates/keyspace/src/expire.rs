//! The passes that nobody's request pays for: expiry and tidying, budgeted.

use tidewheel_store::Progress;

use crate::events::{Event, NotifyClass};
use crate::gate::Seat;
use crate::keyspace::Keyspace;
use crate::shard::NEVER;
use crate::time::{Now, Time};

impl Keyspace {
    /// Removes keys that are due from one shard, at most about `budget` units of work, under one hold of
    /// the shard's lock. Call again while `backlog` is set; `next_deadline` is in clock ticks. Does nothing
    /// while active expiry is off or [`KEEP_DEAD`](crate::KEEP_DEAD) is set. While engine time
    /// stands still, only what was dead before is removed. Exclusive users that wait go first.
    pub fn expire(&self, seat: &mut Seat, shard: usize, time: Time, budget: u32) -> Progress {
        seat.give_way();
        let _visit = seat.visit();
        if !self.settings().active_expire() || self.keeps_dead() {
            return Progress::default();
        }
        let mut progress = self.expire_due(shard, &self.timeline.now(time), budget);
        progress.next_deadline = progress.next_deadline.map(|d| self.timeline.clock_of(d));
        progress
    }

    /// As [`expire`](Self::expire), in engine ticks, whether or not active expiry is on.
    pub(crate) fn expire_due(&self, shard: usize, now: &Now, budget: u32) -> Progress {
        let shard = &self.shards[shard];
        let wants_events = self.settings().notify_flags().wants(NotifyClass::Expired);
        let mut total = Progress::default();
        let mut garbage = Vec::new();
        let mut lateness = self.lateness_us.runs();
        let mut left = budget;
        let mut guard = shard.state.lock();
        let since = self.hooks.stopwatch_ns();
        let state = &mut *guard;
        for db in 0..state.databases.len() {
            if !now.reached(state.due[db]) {
                continue;
            }
            if left == 0 {
                total.backlog = true;
                break;
            }
            let database = &mut state.databases[db];
            let events = &mut state.events;
            let mut freed = 0;
            let progress = database.entries.expire(now.tick, left, |expired| {
                lateness.record(now.lateness_us(expired.deadline));
                if let Some(object) = expired.object {
                    freed += object.bytes();
                    garbage.push(object);
                }
                if wants_events {
                    events.push(Event {
                        db: db as u32,
                        class: NotifyClass::Expired,
                        name: "expired",
                        key: expired.key.into(),
                    });
                }
            });
            database.object_bytes -= freed;
            state.due[db] = if progress.backlog {
                // Due at once, whatever the lower bound says.
                state.due[db].min(now.tick)
            } else {
                progress.next_deadline.unwrap_or(NEVER)
            };
            total.fired += progress.fired;
            total.moved += progress.moved;
            total.backlog |= progress.backlog;
            left = left.saturating_sub(progress.fired.saturating_add(progress.moved).max(1));
            state.counters.expired += u64::from(progress.fired);
            self.count_bytes(state, db as u32);
        }
        state.counters.budget_hits += u64::from(total.backlog);
        self.announce_events(shard, state);
        shard.publish_due(state);
        // The caller is the one who sleeps for this shard, and it reads the bound next.
        state.wake = false;
        total.next_deadline = (state.published != NEVER).then_some(state.published);
        self.record_hold(since);
        drop(guard);
        drop(lateness);
        if !garbage.is_empty() {
            self.discard(garbage);
        }
        total
    }

    /// Tidies one shard: sparse pages, stale timer records; at most about `budget` units of work. Returns
    /// whether more is worth doing. Exclusive users that wait go first.
    pub fn maintain(&self, seat: &mut Seat, shard: usize, budget: u32) -> bool {
        seat.give_way();
        let _visit = seat.visit();
        let mut guard = self.shards[shard].state.lock();
        let since = self.hooks.stopwatch_ns();
        let mut more = false;
        for db in 0..guard.databases.len() {
            // Walking empty databases costs a few loads; a non-empty one takes the whole budget.
            if guard.databases[db].entries.maintain(budget) {
                more = true;
            }
            self.count_bytes(&mut guard, db as u32);
            if more {
                break;
            }
        }
        self.record_hold(since);
        more
    }
}
