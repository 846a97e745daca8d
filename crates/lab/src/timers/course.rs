//! The courses that a structure is put through, and the measurements on the way.

use anyhow::Result;

use super::subject::{Subject, Tick};
use crate::clock;
use crate::heap::allocated;
use crate::latency::Latencies;
use crate::report::{Figures, Report};
use crate::rng::Rng;
use crate::stats;

/// Ticks after the last deadline in which a budgeted course must have caught up.
const GRACE_TICKS: u32 = 60_000;

/// The numbers of every course of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) timers: u32,
    pub(crate) from_ms: u32,
    pub(crate) to_ms: u32,
    pub(crate) budget: u32,
    pub(crate) seed: u64,
}

/// Delays and orders, drawn before anything is timed.
#[derive(Debug)]
pub(crate) struct Course {
    plan: Plan,
    /// The first delays, by id.
    first: Vec<u32>,
    /// The second delays, in the order of rescheduling, which is also that of cancelling.
    second: Vec<u32>,
    order: Vec<u32>,
}

impl Course {
    pub(crate) fn new(plan: &Plan, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let spread = u64::from(plan.to_ms - plan.from_ms);
        let delays = |rng: &mut Rng| -> Vec<u32> {
            (0..plan.timers)
                .map(|_| plan.from_ms + rng.below(spread) as u32)
                .collect()
        };
        let (first, second) = (delays(&mut rng), delays(&mut rng));
        let mut order: Vec<u32> = (0..plan.timers).collect();
        rng.shuffle(&mut order);
        Self {
            plan: *plan,
            first,
            second,
            order,
        }
    }

    /// Insert, reschedule, fire.
    pub(crate) fn fire(
        &self,
        build: impl FnOnce() -> Result<Box<dyn Subject>>,
        report: &mut Report,
    ) -> Result<()> {
        let before = allocated();
        let mut subject = build()?;
        let before = before + subject.handle_bytes() as isize;
        let insert_ns = self.timed(|| subject.insert_all(&self.first));
        let full = self.per_timer((allocated() - before) as f64);
        let reschedule_ns = self.timed(|| subject.reschedule_all(&self.order, &self.second));
        let moved = self.per_timer((allocated() - before) as f64);
        let firing = self.watch(subject.as_mut(), u32::MAX, 0);

        let figures = &mut report.figures;
        figures.push("insert_ns", insert_ns);
        figures.push("reschedule_ns", reschedule_ns);
        figures.push("advance_ns", self.per_timer(firing.total_ns as f64));
        tick_figures(figures, "", &firing);
        figures.push("late_max_ticks", firing.late_at(1.0));
        figures.push("bytes_per_timer", full);
        figures.push("bytes_after_reschedule", moved);
        self.check(report, "fire", &firing);
        Ok(())
    }

    /// Insert, cancel, go through the minute all the same: where lazy deletion pays.
    pub(crate) fn cancel(&self, mut subject: Box<dyn Subject>, report: &mut Report) {
        subject.insert_all(&self.first);
        let before = allocated();
        let cancel_ns = self.timed(|| subject.cancel_all(&self.order));
        let freed = self.per_timer((before - allocated()) as f64);
        let mut drain_ns = 0;
        let mut fired = 0;
        subject.tick_all(self.plan.to_ms, u32::MAX, &mut |tick| {
            drain_ns += tick.ns;
            fired += tick.fired;
            false
        });
        let figures = &mut report.figures;
        figures.push("cancel_ns", cancel_ns);
        figures.push("drain_ns", self.per_timer(drain_ns as f64));
        figures.push("bytes_freed_by_cancel", freed);
        if fired > 0 {
            report.notes.push(format!("{fired} cancelled timers fired"));
        }
    }

    /// Insert, reschedule, fire with a budget of records per tick.
    pub(crate) fn fire_on_budget(&self, mut subject: Box<dyn Subject>, report: &mut Report) {
        subject.insert_all(&self.first);
        subject.reschedule_all(&self.order, &self.second);
        let firing = self.watch(subject.as_mut(), self.plan.budget, GRACE_TICKS);
        let figures = &mut report.figures;
        tick_figures(figures, "budget_", &firing);
        figures.push("budget_late_p50_ticks", firing.late_at(0.5));
        figures.push("budget_late_p99_ticks", firing.late_at(0.99));
        figures.push("budget_late_max_ticks", firing.late_at(1.0));
        figures.push("budget_backlog_max", firing.backlog_max as f64);
        let unfired = u64::from(self.plan.timers) - firing.fired;
        figures.push("budget_unfired", unfired as f64);
        self.check(report, "budget", &firing);
    }

    fn check(&self, report: &mut Report, course: &str, firing: &Firing) {
        let (timers, Firing { early, fired, .. }) = (self.plan.timers, firing);
        if *early > 0 {
            let note = format!("{course}: {early} timers fired early");
            report.notes.push(note);
        }
        if *fired != u64::from(timers) {
            let note = format!("{course}: {fired} of {timers} timers fired");
            report.notes.push(note);
        }
    }

    fn watch(&self, subject: &mut dyn Subject, budget: u32, grace: u32) -> Firing {
        let mut firing = Firing::new(&self.second, self.plan.to_ms);
        let all = u64::from(self.plan.timers);
        subject.tick_all(self.plan.to_ms + grace, budget, &mut |tick| {
            firing.record(tick);
            firing.fired >= all
        });
        firing
    }

    /// Nanoseconds for each timer.
    fn timed(&self, work: impl FnOnce()) -> f64 {
        let from = clock::mono_ns();
        work();
        self.per_timer((clock::mono_ns() - from) as f64)
    }

    /// The share of one timer, of bytes or nanoseconds.
    fn per_timer(&self, all: f64) -> f64 {
        all / f64::from(self.plan.timers)
    }
}

fn tick_figures(figures: &mut Figures, key: &str, firing: &Firing) {
    let ticks = &firing.ticks;
    figures.push(format!("{key}tick_max_ms"), ticks.max_ms());
    figures.push(format!("{key}tick_p999_us"), ticks.at_us(0.999));
}

/// The course of the firing, checked by counts.
///
/// Structures fire in the order of deadlines, so the timers fired first are those due first: the
/// number fired by a tick tells how late each was, and that none was early, without asking which.
#[derive(Debug, Default)]
struct Firing {
    /// Timers due at each tick.
    due: Vec<u32>,
    /// The tick whose timers are being fired, and how many of them have been.
    at: usize,
    of_at: u32,
    due_so_far: u64,
    counted_to: usize,
    fired: u64,
    early: u64,
    total_ns: u64,
    ticks: Latencies,
    /// The number that fired, by ticks of lateness.
    late: Vec<u64>,
    backlog_max: u64,
}

impl Firing {
    fn new(delays: &[u32], last: u32) -> Self {
        let mut due = vec![0; last as usize + 1];
        for &delay in delays {
            due[delay as usize] += 1;
        }
        Self {
            due,
            late: vec![0; (last + GRACE_TICKS) as usize + 2],
            ..Self::default()
        }
    }

    fn record(&mut self, tick: Tick) {
        self.total_ns += tick.ns;
        self.ticks.record(tick.ns.max(1));
        while self.counted_to <= (tick.at as usize).min(self.due.len() - 1) {
            self.due_so_far += u64::from(self.due[self.counted_to]);
            self.counted_to += 1;
        }
        let mut left = tick.fired;
        while left > 0 && self.at < self.due.len() {
            let waiting = self.due[self.at] - self.of_at;
            let taken = waiting.min(left);
            match tick.at.checked_sub(self.at as u32) {
                Some(late) => self.late[late as usize] += u64::from(taken),
                None => self.early += u64::from(taken),
            }
            left -= taken;
            self.of_at += taken;
            if self.of_at == self.due[self.at] {
                self.at += 1;
                self.of_at = 0;
            }
        }
        self.fired += u64::from(tick.fired);
        let backlog = self.due_so_far.saturating_sub(self.fired);
        self.backlog_max = self.backlog_max.max(backlog);
    }

    fn late_at(&self, quantile: f64) -> Option<f64> {
        stats::quantile_of_counts(&self.late, self.late.iter().sum(), quantile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(at: u32, fired: u32) -> Tick {
        Tick { at, ns: 10, fired }
    }

    #[test]
    fn counts_tell_lateness_and_earliness() {
        // Two due at 3, one at 5.
        let mut firing = Firing::new(&[3, 5, 3], 6);
        firing.record(tick(2, 1));
        assert_eq!((firing.early, firing.fired), (1, 1));
        firing.record(tick(3, 0));
        assert_eq!(firing.backlog_max, 1);
        firing.record(tick(7, 2));
        assert_eq!(firing.fired, 3);
        // One of those due at 3 came 4 late, the one due at 5 came 2 late.
        assert_eq!((firing.late[2], firing.late[4]), (1, 1));
        assert_eq!(firing.late_at(0.5), Some(2.0));
        assert_eq!(firing.late_at(1.0), Some(4.0));
        assert_eq!(Firing::new(&[], 3).late_at(1.0), None);
    }
}
