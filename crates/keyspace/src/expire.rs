//! Work in the background, in passes with a budget: expiry and tidying.

use tidewheel_store::Progress;

use crate::gate::Seat;
use crate::keyspace::Keyspace;
use crate::shard::{Hold, NEVER};
use crate::time::{Now, Time};

impl Keyspace {
    /// Removes keys that are due from one shard, at most about `budget` units of work, under one
    /// hold of the shard's lock. Call it again while `backlog` is set; `next_deadline` is in clock
    /// ticks.
    ///
    /// Does nothing while active expiry is off or [`PAUSED`](crate::PAUSED) is set. While engine
    /// time stands still, it removes only keys that were dead before. It passes over a shard that a
    /// long command has. Exclusive users that wait go first.
    pub fn expire(&self, seat: &mut Seat, shard: usize, time: Time, budget: u32) -> Progress {
        if !seat.try_give_way() && seat.is_shut_out() || seat.has_whole() {
            return Progress::default();
        }
        let seat_stays = seat.stays();
        let _visit = seat.visit();
        if !self.rules().active_expire() || self.is_paused() {
            return Progress::default();
        }
        let now = Now::of(&self.timeline, time);
        // A shard that others have for longer is passed over: its own keys wait for it, no others
        // do. Who has locks already tries for no other.
        let hold = match seat_stays {
            true => self.shards[shard].try_lock(),
            false => self.shards[shard].lock_at_once(),
        };
        let mut progress = match hold {
            Some(hold) => self.expire_in((shard, hold), now, budget, seat_stays),
            None => Progress::default(),
        };
        progress.next_deadline = progress.next_deadline.map(|d| self.timeline.clock_of(d));
        progress
    }

    /// As [`expire`](Self::expire), in engine ticks, whether or not active expiry is on.
    pub(crate) fn expire_due(&self, shard: usize, now: &Now, budget: u32) -> Progress {
        let hold = self.shards[shard].lock_at_once();
        hold.map_or_else(Progress::default, |hold| {
            self.expire_in((shard, hold), *now, budget, false)
        })
    }

    /// `beside`: this thread has other shards locked.
    fn expire_in(
        &self,
        (shard, mut hold): (usize, Hold<'_>),
        mut now: Now,
        budget: u32,
        beside: bool,
    ) -> Progress {
        hold.meet(&mut now);
        let mut total = Progress::default();
        let mut garbage = Vec::new();
        let mut lateness = self.lateness_us.runs();
        let mut left = budget;
        let since = self.hooks.stopwatch_ns();
        for db in 0..hold.databases() {
            if !hold.is_due(db, &now) || hold.waits_for_stream(db) {
                continue;
            }
            if left == 0 {
                total.backlog = true;
                break;
            }
            let progress = hold.expire(db, &now, left, |deadline, object| {
                if let Some(deadline) = deadline {
                    lateness.record(now.lateness_us(deadline));
                }
                garbage.extend(object);
            });
            total.fired += progress.fired;
            total.moved += progress.moved;
            total.backlog |= progress.backlog;
            left = left.saturating_sub(progress.fired.saturating_add(progress.moved).max(1));
        }
        hold.counters.budget_hits += u64::from(total.backlog);
        hold.publish_due();
        // The caller sleeps for this shard, and reads the bound next: it need not be woken.
        hold.take_wake();
        total.next_deadline = (hold.published() != NEVER).then_some(hold.published());
        let invalid = (hold.after() != 0).then(|| hold.take_invalid());
        self.record_hold(since);
        if hold.has_ready() {
            match beside {
                true => self.serve_all_and_unlock(now, vec![(shard, hold)]),
                false => self.serve_and_unlock(now, vec![(shard, hold)]),
            }
        } else {
            drop(hold);
        }
        drop(lateness);
        if let Some(invalid) = invalid {
            self.tell_invalid(None, invalid);
        }
        if !garbage.is_empty() {
            self.discard(garbage);
        }
        total
    }

    /// Tidies one shard: sparse pages, stale timer records; at most about `budget` units of work.
    /// Returns whether more is worth doing. Exclusive users that wait go first.
    pub fn maintain(&self, seat: &mut Seat, shard: usize, budget: u32) -> bool {
        if !seat.try_give_way() && seat.is_shut_out() {
            return false;
        }
        let _visit = seat.visit();
        let Some(mut hold) = self.shards[shard].try_lock() else {
            return false;
        };
        let since = self.hooks.stopwatch_ns();
        // An empty database costs a few loads; one with keys takes the whole budget.
        let more = (0..hold.databases()).any(|db| hold.tidy(db, budget));
        self.record_hold(since);
        more
    }
}
