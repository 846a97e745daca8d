//! One subject beside its BTreeMap model, compared after every step.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use tidewheel_timer::{Progress, forecast_window};

use super::subject::Subject;

/// The promises of a queue beyond the common contract, and the tests that would only take too long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traits {
    /// `next_deadline` and `forecast` are exact.
    pub(crate) exact: bool,
    /// Ticks of one turn, for a wheel with rounds: it may wake once a turn for each record.
    pub(crate) turn: Option<u64>,
    /// The furthest that the clock is moved at once.
    pub(crate) reach: u64,
}

/// Times that a record may be touched before its timer fires: once a level on the way to the tick
/// that it was registered for, once there if the timer was moved later, and once a level again.
const TOUCHES: u64 = 2 * 8 + 1;

/// Handles of gone timers that are remembered.
const GONE_MAX: usize = 64;

/// Wake-ups that the suite is ready to do for one timer.
const WAKES_MAX: u64 = 2_000;

#[derive(Debug, Clone, Copy)]
struct Pending<H> {
    handle: H,
    /// As it was asked for.
    deadline: u64,
    /// When it counts as due: the deadline, or the queue's position if it had passed.
    due: u64,
}

/// A subject and the model of what it holds. Timers are named by a sequence number, since the
/// handles of two lanes differ.
pub(crate) struct Lane<S: Subject> {
    pub(crate) subject: S,
    traits: Traits,
    timers: BTreeMap<u64, Pending<S::Handle>>,
    names: HashMap<S::Handle, u64>,
    order: BTreeSet<(u64, u64)>,
    gone: VecDeque<S::Handle>,
    /// The latest time from `insert` and `advance`: the queue promises to act by it.
    binding: u64,
    /// The latest time from any call.
    told: u64,
    elapsed: u64,
}

impl<S: Subject> Lane<S> {
    pub(crate) fn new(subject: S, traits: Traits, now: u64) -> Self {
        assert_eq!(subject.elapsed(), now);
        Self {
            subject,
            traits,
            timers: BTreeMap::new(),
            names: HashMap::new(),
            order: BTreeSet::new(),
            gone: VecDeque::new(),
            binding: now,
            told: now,
            elapsed: now,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.timers.len()
    }

    pub(crate) fn deadlines(&self) -> Vec<u64> {
        self.timers.values().map(|timer| timer.deadline).collect()
    }

    pub(crate) fn deadline(&self, seq: u64) -> Option<u64> {
        self.timers.get(&seq).map(|timer| timer.deadline)
    }

    /// The `pick`-th pending timer, round and round.
    pub(crate) fn pick(&self, pick: usize) -> Option<u64> {
        let at = pick.checked_rem(self.timers.len())?;
        self.timers.keys().nth(at).copied()
    }

    pub(crate) fn every(&self, nth: usize) -> Vec<u64> {
        self.timers.keys().step_by(nth).copied().collect()
    }

    pub(crate) fn earliest(&self) -> Option<u64> {
        self.order.first().map(|&(due, _)| due)
    }

    pub(crate) fn insert(&mut self, seq: u64, deadline: u64, now: u64) {
        let handle = self.subject.insert(deadline, now);
        self.binding = self.binding.max(now);
        self.told = self.told.max(now);
        let other = self.names.insert(handle, seq);
        assert_eq!(other, None, "the handle of a pending timer is given away");
        self.note(seq, handle, deadline);
    }

    pub(crate) fn reschedule(&mut self, seq: u64, deadline: u64, now: u64) {
        let pending = self.timers[&seq];
        let found = self.subject.reschedule(pending.handle, deadline, now);
        assert!(found, "a pending timer is refused");
        self.told = self.told.max(now);
        self.order.remove(&(pending.due, seq));
        self.note(seq, pending.handle, deadline);
    }

    pub(crate) fn cancel(&mut self, seq: u64) {
        let handle = self.timers[&seq].handle;
        assert!(self.subject.cancel(handle), "a pending timer is refused");
        self.forget(seq);
    }

    /// A handle whose timer has gone is refused by every verb.
    pub(crate) fn use_gone(&mut self, pick: usize, deadline: u64, now: u64) {
        let Some(at) = pick.checked_rem(self.gone.len()) else {
            return;
        };
        let handle = self.gone[at];
        assert_eq!(self.subject.deadline(handle), None);
        assert!(!self.subject.reschedule(handle, deadline, now));
        assert!(!self.subject.cancel(handle));
    }

    /// One `advance`; returns what fired, as (when it was due, sequence number), in order.
    pub(crate) fn advance(&mut self, now: u64, budget: u32) -> (Vec<(u64, u64)>, Progress) {
        self.binding = self.binding.max(now);
        self.told = self.told.max(now);
        let mut handles = Vec::new();
        let progress = self.subject.advance(now, budget, &mut handles);
        let fired: Vec<(u64, u64)> = handles.iter().map(|&handle| self.fired(handle)).collect();

        assert_eq!(progress.fired as usize, fired.len(), "fired count");
        let touched = u64::from(progress.fired) + u64::from(progress.moved);
        assert!(
            touched <= u64::from(budget),
            "{touched} touched with a budget of {budget}"
        );
        assert_eq!(progress.next_deadline, self.subject.next_deadline());
        assert!(
            fired.is_sorted_by_key(|&(due, _)| due),
            "deadlines are not ascending: {fired:?}"
        );
        if progress.backlog {
            assert!(budget < u32::MAX, "backlog without a budget");
            if let (Some(&(last, _)), Some(left)) = (fired.last(), self.earliest()) {
                assert!(last <= left, "{last} fired and {left} was left");
            }
        } else {
            let late = self
                .timers
                .values()
                .find(|timer| timer.deadline <= self.binding);
            assert!(
                late.is_none(),
                "{late:?} is late at {now} and no backlog is declared"
            );
            if let Some(next) = progress.next_deadline {
                assert!(
                    next > self.binding,
                    "asks to be woken at {next}, before {now}"
                );
            }
        }
        (fired, progress)
    }

    /// Calls `advance` at one moment until there is no backlog.
    pub(crate) fn finish(&mut self, now: u64, budgets: &[u32]) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        for &budget in budgets.iter().cycle() {
            let (fired, progress) = self.advance(now, budget);
            all.extend(fired);
            self.check();
            if !progress.backlog {
                break;
            }
        }
        all
    }

    pub(crate) fn drain(&mut self) {
        let mut handles = Vec::new();
        self.subject.drain(&mut handles);
        for handle in handles {
            self.name_of(handle);
        }
        assert_eq!(self.timers.len(), 0, "drain left timers behind");
        assert_eq!(self.subject.next_deadline(), None);
    }

    /// Sleeps to `next_deadline` again and again until something fires, in a bounded number of
    /// wake-ups. Returns the clock then; `None` when nothing is pending or it would take too long.
    ///
    /// Bounds the number of wake-ups: a wake-up fires, moves or drops a record, or it only
    /// finds a later time to wake. The wake-up after that one touches a record. A record is touched
    /// at most [`TOUCHES`] times, so there are at most twice that for every record. A wheel with
    /// rounds wakes once a turn for every record, and once more when a record is filed again.
    pub(crate) fn sleep(&mut self, mut now: u64) -> Option<u64> {
        let due = self.earliest()?;
        let records: u64 = self.subject.forecast(now).iter().sum();
        let most = match self.traits.turn {
            None => 2 * TOUCHES * records + 2,
            Some(turn) => (due.saturating_sub(now) / turn + 2).checked_mul(2 * records + 1)?,
        };
        if self.traits.turn.is_some() && most > WAKES_MAX {
            return None;
        }
        let mut idle_before = false;
        for _ in 0..most {
            let next = self.subject.next_deadline()?;
            assert!(next <= due, "sleeps until {next}, beyond {due}");
            now = now.max(next);
            let (fired, progress) = self.advance(now, u32::MAX);
            self.check();
            if !fired.is_empty() {
                return Some(now);
            }
            let idle = progress.moved == 0;
            assert!(
                progress.next_deadline > Some(next),
                "a wake-up that changes nothing"
            );
            assert!(
                !(idle && idle_before) || self.traits.turn.is_some(),
                "two wake-ups in a row found nothing to do"
            );
            idle_before = idle;
        }
        panic!("{due} is not reached in {most} wake-ups");
    }

    /// Tidying in steps ends.
    pub(crate) fn tidy(&mut self, budget: u32) {
        let mut calls = 0;
        while self.subject.maintain(budget) {
            self.subject.validate();
            calls += 1;
            assert!(calls < 10_000, "tidying does not end");
        }
    }

    /// Checks the invariants that hold between any two calls.
    pub(crate) fn check(&mut self) {
        self.subject.validate();
        assert_eq!(self.subject.len(), self.timers.len());
        assert_eq!(self.subject.is_empty(), self.timers.is_empty());
        let elapsed = self.subject.elapsed();
        assert!(elapsed >= self.elapsed, "the position runs backwards");
        assert!(elapsed <= self.told, "the position is ahead of the clock");
        self.elapsed = elapsed;
        let next = self.subject.next_deadline();
        if let Some(earliest) = self.earliest() {
            assert!(
                elapsed <= earliest,
                "the position has passed a pending timer"
            );
            assert!(
                next.is_some_and(|next| next <= earliest),
                "next_deadline is {next:?}, the earliest {earliest}"
            );
        }
        if self.traits.exact {
            assert_eq!(next, self.earliest());
        }
    }

    /// Every registered deadline is counted, and stale ones at the most besides.
    pub(crate) fn check_forecast(&self, now: u64) {
        let forecast = self.subject.forecast(now);
        assert!(forecast.iter().sum::<u64>() >= self.timers.len() as u64);
        if self.traits.exact {
            let mut expected = [0; 65];
            for &(due, _) in &self.order {
                expected[forecast_window(due.saturating_sub(now))] += 1;
            }
            assert_eq!(forecast, expected);
        }
    }

    /// Every pending handle is known, with its deadline.
    pub(crate) fn check_handles(&self) {
        for timer in self.timers.values() {
            let deadline = self.subject.deadline(timer.handle);
            let asked = timer.deadline;
            assert!(
                deadline.is_some_and(|d| d == asked || d == timer.due),
                "the deadline reads as {deadline:?} and was set to {asked}"
            );
        }
    }

    pub(crate) fn reach(&self, from: u64, to: u64) -> u64 {
        to.min(from.saturating_add(self.traits.reach))
    }

    fn note(&mut self, seq: u64, handle: S::Handle, deadline: u64) {
        let due = deadline.max(self.subject.elapsed());
        self.order.insert((due, seq));
        self.timers.insert(
            seq,
            Pending {
                handle,
                deadline,
                due,
            },
        );
    }

    fn fired(&mut self, handle: S::Handle) -> (u64, u64) {
        let (seq, timer) = self.name_of(handle);
        assert!(
            timer.deadline <= self.told,
            "{} fired early, at {}",
            timer.deadline,
            self.told
        );
        (timer.due, seq)
    }

    fn name_of(&mut self, handle: S::Handle) -> (u64, Pending<S::Handle>) {
        let seq = self.names.get(&handle).copied();
        let seq = seq.unwrap_or_else(|| panic!("{handle:?} fired, and is not pending"));
        let timer = self.timers[&seq];
        self.forget(seq);
        (seq, timer)
    }

    fn forget(&mut self, seq: u64) {
        let timer = self.timers.remove(&seq).expect("a pending timer");
        self.order.remove(&(timer.due, seq));
        self.names.remove(&timer.handle);
        self.gone.push_back(timer.handle);
        if self.gone.len() > GONE_MAX {
            self.gone.pop_front();
        }
    }
}
