//! One step of a driver, with its budget: it removes due entries, sweeps, tidies, and computes when
//! the next step is.

use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tidewheel_time::{Moment, NEVER};

use crate::core::inner::Inner;
use crate::drive::expiry::{Progress, Rounds};
use crate::quiet::forget_quietly;
use crate::sync::Ordering::SeqCst;

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

    /// Returns how many ticks have passed since this one.
    pub(crate) fn passed_since(&self, tick: u64) -> u64 {
        self.time.now().tick().saturating_sub(tick)
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
