//! Any operations, any budgets, any clocks: one lane.

use super::lane::{Lane, Traits};
use super::ops::{Jump, Op, When};
use super::subject::Subject;

/// Timers beyond which a burst is left out, so that a case stays quick.
const TIMERS_MAX: usize = 1_500;

/// Furthest deadline that a `Sleep` in the middle of a run goes for: 1,100 years of milliseconds.
const SLEEP_MAX: u64 = 1 << 45;

struct Run<S: Subject> {
    lane: Lane<S>,
    now: u64,
    seq: u64,
}

/// Runs the operations, then sleeps from deadline to deadline until nothing is pending.
pub(crate) fn run<S: Subject>(subject: S, traits: Traits, start: u64, ops: &[Op]) {
    let mut run = Run {
        lane: Lane::new(subject, traits, start),
        now: start,
        seq: 0,
    };
    run.lane.check();
    for op in ops {
        run.step(op);
        run.lane.check();
        run.lane.check_forecast(run.now);
        run.lane.check_handles();
    }
    run.end();
}

impl<S: Subject> Run<S> {
    fn step(&mut self, op: &Op) {
        match *op {
            Op::Clock(jump) => self.now = self.clock(jump),
            Op::Insert(when) => self.insert(self.tick(when, None)),
            Op::Burst { when, count, gap } => self.burst(when, count, gap),
            Op::Reschedule { pick, when } => {
                if let Some(seq) = self.lane.pick(pick) {
                    let deadline = self.tick(when, self.lane.deadline(seq));
                    self.lane.reschedule(seq, deadline, self.now);
                }
            }
            Op::Cancel { pick } => {
                if let Some(seq) = self.lane.pick(pick) {
                    self.lane.cancel(seq);
                }
            }
            Op::Storm { nth } => {
                for seq in self.lane.every(nth) {
                    self.lane.cancel(seq);
                }
            }
            Op::Advance { jump, budget } => {
                self.now = self.clock(jump);
                self.lane.advance(self.now, budget);
            }
            Op::Finish { jump, ref budgets } => {
                self.now = self.clock(jump);
                self.lane.finish(self.now, budgets);
            }
            Op::Ticks { count, budget } => {
                for _ in 0..count {
                    self.now = self.now.saturating_add(1);
                    self.lane.advance(self.now, budget);
                    self.lane.check();
                }
            }
            Op::Sleep => {
                let near = |due| due < self.now.saturating_add(SLEEP_MAX);
                if self.lane.earliest().is_some_and(near)
                    && let Some(now) = self.lane.sleep(self.now)
                {
                    self.now = now;
                }
            }
            Op::Drain => self.lane.drain(),
            Op::Maintain { budget } => {
                self.lane.subject.maintain(budget);
            }
            Op::Tidy { budget } => self.lane.tidy(budget),
            Op::Churn {
                when,
                count,
                gap,
                cancel,
            } => self.churn(when, count, gap, cancel),
            Op::Gone { pick, when } => {
                let deadline = self.tick(when, None);
                self.lane.use_gone(pick, deadline, self.now);
            }
        }
    }

    fn insert(&mut self, deadline: u64) {
        self.seq += 1;
        self.lane.insert(self.seq, deadline, self.now);
    }

    fn burst(&mut self, when: When, count: u16, gap: u64) {
        if self.lane.len() > TIMERS_MAX {
            return;
        }
        let first = self.tick(when, None);
        for i in 0..u64::from(count) {
            self.insert(first.saturating_add(i * gap));
        }
    }

    fn churn(&mut self, when: When, count: u16, gap: u64, cancel: bool) {
        let last = self.tick(when, None);
        self.insert(last.saturating_add(u64::from(count) * gap));
        for i in (0..u64::from(count)).rev() {
            let deadline = last.saturating_add(i * gap);
            if cancel {
                self.insert(deadline);
                self.lane.cancel(self.seq);
            } else {
                self.lane.reschedule(self.seq, deadline, self.now);
            }
        }
    }

    fn tick(&self, when: When, own: Option<u64>) -> u64 {
        when.resolve(self.now, own, &self.lane.deadlines())
    }

    fn clock(&self, jump: Jump) -> u64 {
        let next = self.lane.subject.next_deadline();
        let to = jump.resolve(self.now, self.lane.earliest(), next);
        self.lane.reach(self.now, to)
    }

    /// Everything fires in the end, in order, however far; and then memory is given back.
    fn end(mut self) {
        self.lane.finish(self.now, &[u32::MAX]);
        while let Some(now) = self.lane.sleep(self.now) {
            self.now = now;
        }
        // A wheel with rounds is not asked to go round for millennia.
        self.lane.drain();
        self.lane.check();
    }
}
