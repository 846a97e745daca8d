//! One step of a driver, with its budget: it removes due entries, sweeps, tidies, and computes when
//! the next step is.
//!
//! A pass removes due entries in short holds, shard after shard, and then lets the wheels work
//! ahead.
//!
//! The sweep gives back the memory of entries whose tags were invalidated, in short holds too.
//!
//! An invalidated entry is invisible at once. A sweep removes the entries that readers no longer
//! see.
//!
//! One sweep walks all shards, and within a shard the slots from the highest to the lowest. Entries
//! that move meanwhile move to lower slots, so the sweep meets every entry that was there when it
//! began. All requests that come while a sweep runs become one further sweep. After a sweep the
//! driver's thread rests for [`REST`] times as long as the sweep took, so repeated invalidations
//! cost at most a tenth of a core.

use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tidewheel_time::{Moment, NEVER};
use tidewheel_timer::SPLIT_PER_TICK;

use crate::core::hooks::SweepHook;
use crate::core::inner::{Inner, ShardCell};
use crate::core::requests::Sweep;
use crate::quiet::forget_quietly;
use crate::shard::effects::RECORDS_PER_HOLD;
use crate::shard::rules::Hashed;
use crate::sync::{Ordering::Relaxed, Ordering::SeqCst};

/// The pause between the last removals and tidying: entries that are about to die need not be
/// moved.
const CALM_TICKS: u64 = 100;

/// The longest time for which removals may put tidying off.
const TIDY_WITHIN_TICKS: u64 = 2000;

/// Nanoseconds after which a turn on a shared driver ends with the hold of a lock that it is in.
const SHARED_TURN: u64 = 200_000;

/// The amount of work that one turn may do.
#[derive(Clone, Copy)]
pub(crate) struct TurnBudget {
    /// Timer records touched.
    pub(crate) records: u32,
    /// Slots that a sweep looks at.
    pub(crate) slots: u32,
    /// Units of tidying.
    pub(crate) tidy: u32,
    /// Calls of a listener.
    pub(crate) events: usize,
    /// Entries of a closed cache that are dropped.
    pub(crate) drops: usize,
    /// Nanoseconds of the cache's clock, after which no hold of a lock begins.
    pub(crate) time: Option<u64>,
}

impl TurnBudget {
    /// The budget of a driver with one cache: it bounds the time until the driver notices that it
    /// was told to stop.
    pub(crate) const OWN: Self = Self {
        records: 4096,
        slots: 2048,
        tidy: 256,
        events: 256,
        drops: 4096,
        time: None,
    };

    /// The budget of a driver whose other caches wait.
    pub(crate) const SHARED: Self = Self {
        records: 1024,
        slots: 64,
        tidy: 64,
        events: 16,
        drops: 16,
        time: Some(SHARED_TURN),
    };
}

/// The driver's next action after a pass.
#[derive(PartialEq, Eq)]
pub(crate) enum Next {
    /// Make another pass at once.
    Again,
    /// Sleep until this tick; `u64::MAX` for until woken.
    Sleep(u64),
    /// Wait until this tick, whatever is due: the listener must empty its queue first.
    Rest(u64),
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    fn step(&self, rounds: &mut Rounds, budget: &TurnBudget) -> Next {
        self.requests.alarm.take_request();
        let moment = self.time.now();
        let now = moment.tick();
        rounds.ends_at = budget.time.map(|time| Moment(moment.0 + time));
        let progress = self.pass(rounds, now, &mut { budget.records });
        if progress.backlog {
            return self.go_on(now);
        }
        if self.sweep_at(now) <= now && self.sweep(now, &mut { budget.slots }) {
            return self.go_on(now);
        }
        let Some(tidy_at) = self.tidy_when_calm(rounds, now, progress.expired > 0, budget) else {
            return Next::Again;
        };
        // Who lets time go on asks: until then nothing calms down.
        let tidy_at = if self.time.is_frozen() {
            NEVER
        } else {
            tidy_at
        };
        Next::Sleep(self.next_event().min(tidy_at).min(self.sweep_at(now)))
    }

    /// A step of the manual driver, at a reading of `Cache::now`; a later one counts as that. The
    /// caller has the cache's rounds, unless another thread drives, or this one: what a pass drops
    /// may call this again.
    pub(crate) fn advance(
        &self,
        rounds: Option<&mut Rounds>,
        shown: Duration,
        budget: &mut u32,
    ) -> Progress {
        let now = self.time.moment(shown).min(self.time.now()).tick();
        let progress = match rounds {
            Some(rounds) => {
                let mut progress = self.pass(rounds, now, budget);
                progress.backlog = progress.backlog || self.sweep_all(now, budget);
                progress
            }
            None => self.pass(&mut Rounds::default(), now, budget),
        };
        if !progress.backlog {
            self.tidy(budget);
        }
        progress
    }

    /// Returns whether the turn has lasted as long as others can wait.
    pub(crate) fn is_over(&self, rounds: &Rounds) -> bool {
        rounds.ends_at.is_some_and(|end| self.time.now() >= end)
    }

    /// Returns the tick at which to sweep. While time is frozen no pause would end, so a pause is
    /// skipped.
    fn sweep_at(&self, now: u64) -> u64 {
        match self.requests.sweeps.due_at() {
            NEVER => NEVER,
            at if self.time.is_frozen() => at.min(now),
            at => at,
        }
    }

    /// Returns the next action when more is due: another pass, unless the listener must empty its
    /// queue first.
    fn go_on(&self, now: u64) -> Next {
        if self.rules.events.must_wait() {
            Next::Rest(now + 1)
        } else {
            Next::Again
        }
    }

    /// Tidies memory if that is due; says when it is, and `None` when there is more to tidy.
    fn tidy_when_calm(
        &self,
        rounds: &mut Rounds,
        now: u64,
        expired: bool,
        budget: &TurnBudget,
    ) -> Option<u64> {
        if self.requests.tidy.swap(false, SeqCst) && rounds.tidy_at.is_none() {
            rounds.tidy_at = Some((now + CALM_TICKS, now + TIDY_WITHIN_TICKS));
        }
        let Some((at, latest)) = rounds.tidy_at else {
            return Some(NEVER);
        };
        if expired {
            let later = (now + CALM_TICKS).min(latest);
            rounds.tidy_at = Some((later, latest));
            return Some(later);
        }
        if now < at {
            return Some(at);
        }
        if self.tidy(&mut { budget.tidy }) {
            return None;
        }
        rounds.tidy_at = None;
        Some(NEVER)
    }

    /// A step that a panic of user code does not get out of: `None` then. What it concerned is
    /// gone, and others are to expire on time.
    pub(crate) fn safe_step(&self, rounds: &mut Rounds, budget: &TurnBudget) -> Option<Next> {
        catch_unwind(AssertUnwindSafe(|| self.step(rounds, budget)))
            .map_err(forget_quietly)
            .ok()
    }
}

impl<K, V, S> Inner<K, V, S> {
    /// Returns the tick at which the next entry expires, unless a writer changes that.
    pub(crate) fn next_event(&self) -> u64 {
        match self.next_deadline() {
            Some(next) if !self.time.is_frozen() => next,
            _ => NEVER,
        }
    }
}

/// The result of one call of [`Cache::advance`](crate::Cache::advance).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Entries removed because their time was over.
    pub expired: u64,
    /// Timer records moved or dropped, and entries moved together.
    pub moved: u64,
    /// True if the budget ran out first: call again.
    pub backlog: bool,
    /// The time until the next call is worth while; `None` when nothing has a deadline.
    pub next: Option<Duration>,
}

/// Timer records that one hold moves ahead of their time: a move takes a tenth of a removal.
const AHEAD_PER_HOLD: u32 = 64;

/// Units of tidying in one hold of a shard's lock.
const TIDY_PER_HOLD: u32 = 16;

/// The state of a driver between two passes.
#[derive(Default)]
pub(crate) struct Rounds {
    /// The shard that the next pass begins with.
    first: usize,
    /// The tick at which to tidy if no more entries are removed, and the tick at which to tidy
    /// anyhow.
    pub(crate) tidy_at: Option<(u64, u64)>,
    /// The end of the turn, if other caches wait for it.
    pub(crate) ends_at: Option<Moment>,
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Removes what is due at engine tick `now`; then works ahead with what is left of the budget.
    pub(crate) fn pass(&self, rounds: &mut Rounds, now: u64, budget: &mut u32) -> Progress {
        let mut progress = Progress::default();
        // One hold of each shard in turn, so that each shard is free between two holds.
        loop {
            let mut backlog = false;
            let (last, first) = self.shards.split_at(rounds.first);
            for (at, cell) in (rounds.first..).zip(first).chain((0..).zip(last)) {
                if cell.next_deadline.get() > now {
                    continue;
                }
                let hold = self.expire_hold(cell, now, RECORDS_PER_HOLD, budget);
                if self.is_over(rounds) {
                    *budget = 0;
                }
                progress.expired += u64::from(hold.fired);
                progress.moved += u64::from(hold.moved);
                backlog |= hold.backlog;
                if hold.backlog && hold.fired + hold.moved == 0 {
                    // Begin here next time: no shard starves.
                    rounds.first = at;
                    progress.backlog = true;
                    return progress;
                }
            }
            if !backlog {
                progress.moved += self.work_ahead(now, budget);
                return progress;
            }
        }
    }

    /// Removes due entries of one shard in one short hold of its lock that touches at most
    /// `records` timer records; what is left of them, the wheel uses to work ahead.
    fn expire_hold(
        &self,
        cell: &ShardCell<K, V, S>,
        now: u64,
        records: u32,
        budget: &mut u32,
    ) -> tidewheel_store::Progress {
        if *budget == 0 || self.rules.events.must_wait() {
            return tidewheel_store::Progress {
                backlog: true,
                ..Default::default()
            };
        }
        let hold = records.min(*budget);
        let progress = self.hold(cell, |shard| {
            let progress = shard.expire(now, hold);
            shard.give_back();
            progress
        });
        *budget -= (progress.fired + progress.moved).clamp(1, *budget);
        progress
    }

    /// Lets the wheels of crowded shards split coming slots before their start, when nothing is
    /// due. Returns the records moved.
    fn work_ahead(&self, now: u64, budget: &mut u32) -> u64 {
        let mut moved = 0;
        for _ in 0..SPLIT_PER_TICK / AHEAD_PER_HOLD {
            let mut crowded = false;
            for cell in &self.shards {
                // A wheel with work ahead asks to be called at every tick.
                if cell.next_deadline.get() > now + 1 || *budget == 0 {
                    continue;
                }
                let hold = self.expire_hold(cell, now, AHEAD_PER_HOLD, budget);
                moved += u64::from(hold.moved);
                crowded |= hold.moved >= AHEAD_PER_HOLD / 2;
            }
            if !crowded {
                break;
            }
        }
        moved
    }

    /// Tidies the shards that want it; `true` when some still do.
    pub(crate) fn tidy(&self, budget: &mut u32) -> bool {
        let mut more = false;
        for cell in &self.shards {
            if cell.untidy.load(Relaxed) {
                more |= *budget == 0 || self.tidy_shard(cell, budget);
            }
        }
        more
    }

    /// Tidies one shard, in short holds of its lock; returns whether more is worth doing.
    fn tidy_shard(&self, cell: &ShardCell<K, V, S>, budget: &mut u32) -> bool {
        cell.untidy.store(false, Relaxed);
        while *budget > 0 {
            let hold = TIDY_PER_HOLD.min(*budget);
            *budget -= hold;
            let more = self.hold(cell, |shard| {
                shard.removals = 0;
                let place_of = |key: &K| self.rules.place_of(key);
                shard.store.maintain(hold, &place_of)
            });
            if !more {
                return false;
            }
        }
        cell.untidy.store(true, Relaxed);
        true
    }
}

/// Slots that one hold of a shard's lock looks at.
const ENTRIES_PER_HOLD: u32 = 32;

/// The driver rests this many times as long as a sweep took before it begins the next.
const REST: u64 = 9;

/// Ticks between two sweeps at least.
const REST_MIN: u64 = 10;

impl<K: Hash + Eq, V, S: BuildHasher> SweepHook<K, V, S> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Inner::remove_of_slots,
            key: Inner::remove_key,
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Goes on with the sweep that was paused, or begins one that was asked for. Looks at `budget`
    /// slots at most; returns whether there is more of it to do at once.
    pub(crate) fn sweep(&self, now: u64, budget: &mut u32) -> bool {
        let sweeps = &self.requests.sweeps;
        let sweep = sweeps.resume().or_else(|| sweeps.begin(now));
        sweep.is_some_and(|sweep| self.go_on_with(sweep, now, budget))
    }

    /// As [`sweep`](Self::sweep), without the pause after the last one. If there are a paused sweep
    /// and a requested one, the paused one comes first.
    pub(crate) fn sweep_all(&self, now: u64, budget: &mut u32) -> bool {
        let sweeps = &self.requests.sweeps;
        let mut go_on = |sweep| self.go_on_with(sweep, now, budget);
        sweeps.resume().is_some_and(&mut go_on) || sweeps.begin(now).is_some_and(go_on)
    }

    /// Looks under the reader lock, and takes the writer lock only where there is something to
    /// remove.
    fn go_on_with(&self, mut at: Sweep, now: u64, budget: &mut u32) -> bool {
        while at.shard < self.shards.len() {
            if *budget == 0 || self.rules.events.must_wait() {
                self.requests.sweeps.pause(at);
                return true;
            }
            let hold = ENTRIES_PER_HOLD.min(*budget);
            *budget -= hold;
            match self.sweep_slots(&self.shards[at.shard], at.before, hold) {
                Some(next) => at.before = next,
                None => {
                    at.before = u32::MAX;
                    at.shard += 1;
                }
            }
        }
        let rest = (self.now().tick().saturating_sub(at.began) * REST).max(REST_MIN);
        self.requests.sweeps.end(now.saturating_add(rest));
        false
    }

    /// Sweeps as many slots of a shard as one hold may; returns where to go on.
    pub(crate) fn sweep_some(&self, cell: &ShardCell<K, V, S>, before: u32) -> Option<u32> {
        self.sweep_slots(cell, before, ENTRIES_PER_HOLD)
    }

    /// Sweeps the next slots of a shard; returns where to go on.
    fn sweep_slots(&self, cell: &ShardCell<K, V, S>, before: u32, count: u32) -> Option<u32> {
        let hook = self.hooks.sweep.get()?;
        (hook.slots)(self, cell, before, count)
    }

    fn remove_of_slots(&self, cell: &ShardCell<K, V, S>, before: u32, count: u32) -> Option<u32> {
        let mut found = false;
        let next = self
            .read(cell)
            .store
            .scan_labels(before, count, |_, label| {
                found |= !self.rules.tags.is_current(label);
            });
        if found {
            self.hold_now(cell, |shard, now| {
                shard.sweep(before, count, now);
            });
        }
        next
    }

    /// Removes an entry that a reader has found invalidated.
    fn remove_key(&self, hash: Hashed, is: &dyn Fn(&K) -> bool) {
        self.change(self.cell(hash), |shard, now| {
            shard.remove_invalidated(hash, is, now);
        });
    }
}
