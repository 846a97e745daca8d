//! The tally counts, by the millisecond, entries that fell due and that were found: lateness and
//! the dead that are held.

use std::ops::Range;

use crate::report::{Curve, Report};
use crate::stats;

const CURVE_POINTS: usize = 200;
/// Between two looks at how many dead are held. They lie in mid-interval, since much happens at
/// whole seconds: a look just after a walk would find nothing.
const LOOK_EVERY_MS: usize = 100;
const LOOK_PHASE_MS: usize = 50;
/// The time of the curve's first point, and the distance of the points.
const CURVE_FROM_MS: usize = 28_000;
const CURVE_EVERY_LOOKS: usize = 2;

/// Counts by virtual time since the start.
#[derive(Debug)]
pub(super) struct Tally {
    start_ms: u64,
    due_at: Vec<u64>,
    found_at: Vec<u64>,
    late_by: Vec<u64>,
}

impl Tally {
    pub(super) fn new(start_ms: u64, watched_ms: u64) -> Self {
        let empty = vec![0; watched_ms as usize + 1];
        Self {
            start_ms,
            due_at: empty.clone(),
            found_at: empty.clone(),
            late_by: empty,
        }
    }

    /// An entry will fall due.
    pub(super) fn falls_due(&mut self, deadline_ms: u64) {
        self.due_at[(deadline_ms - self.start_ms) as usize] += 1;
    }

    /// An entry was found.
    pub(super) fn found(&mut self, deadline_ms: u64, at_ms: u64) {
        self.found_at[(at_ms - self.start_ms) as usize] += 1;
        // An underflow would be an entry that was found early: better a panic than a figure.
        self.late_by[(at_ms - deadline_ms) as usize] += 1;
    }

    /// Figures and curves; the dead are averaged over `window_ms`.
    pub(super) fn report(&self, window_ms: Range<u64>, report: &mut Report) {
        let all: u64 = self.due_at.iter().sum();
        let found: u64 = self.found_at.iter().sum();
        let figures = &mut report.figures;
        let late = |quantile| stats::quantile_of_counts(&self.late_by, all, quantile);
        figures.push_or_never("late_p50_ms", late(0.5));
        figures.push_or_never("late_p99_ms", late(0.99));
        figures.push_or_never("late_max_ms", late(1.0));
        let dead = self.dead();
        let within = |at_ms: usize| window_ms.contains(&(at_ms as u64));
        let window = dead.iter().filter(|(at_ms, _)| within(*at_ms));
        let window: Vec<f64> = window.map(|&(_, dead)| dead as f64).collect();
        figures.push("dead_mean", stats::mean(&window));
        figures.push("dead_max", window.iter().copied().reduce(f64::max));
        figures.push("never_found", (all - found) as f64);
        let late = Curve::new("late, ms", "share of entries", self.lateness(all));
        report.curves.insert("lateness".to_owned(), late);
        let drawn = dead.iter().filter(|(at_ms, _)| *at_ms >= CURVE_FROM_MS);
        let points = drawn.step_by(CURVE_EVERY_LOOKS);
        let points = points.map(|&(at_ms, dead)| [at_ms as f64 / 1e3, dead as f64]);
        let dead = Curve::new("time, s", "dead entries", points.collect());
        report.curves.insert("dead".to_owned(), dead);
    }

    /// The share of all entries that was found at most so late.
    fn lateness(&self, all: u64) -> Vec<[f64; 2]> {
        let mut sum = 0;
        let mut steps = Vec::new();
        for (ms, count) in self.late_by.iter().enumerate().filter(|(_, n)| **n > 0) {
            sum += count;
            steps.push([ms as f64, sum as f64 / all as f64]);
        }
        let last = CURVE_POINTS - 1;
        let thinned = |i| steps[i * (steps.len() - 1) / last];
        match steps.len() {
            0..=CURVE_POINTS => steps,
            _ => (0..=last).map(thinned).collect(),
        }
    }

    /// The dead that are held at each look.
    fn dead(&self) -> Vec<(usize, u64)> {
        let mut looks = Vec::new();
        let mut dead = 0;
        for (at_ms, (due, found)) in self.due_at.iter().zip(&self.found_at).enumerate() {
            dead = dead + due - found;
            if at_ms % LOOK_EVERY_MS == LOOK_PHASE_MS {
                looks.push((at_ms, dead));
            }
        }
        looks
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lateness_and_the_dead_are_counted_by_the_millisecond() {
        let mut tally = Tally::new(1_000, 30_000);
        for deadline in [1_010, 1_020, 1_030, 1_240] {
            tally.falls_due(deadline);
        }
        tally.found(1_010, 1_010);
        tally.found(1_020, 1_100);
        tally.found(1_240, 1_245);
        let mut report = Report::new("test", json!({}));
        tally.report(0..300, &mut report);
        let value = |key: &str| report.figures.value(key);
        assert_eq!(value("late_p50_ms"), Some(5.0));
        assert_eq!(value("late_max_ms"), None, "one was never found");
        assert_eq!(value("never_found"), Some(1.0));
        // At 50, 150 and 250 ms.
        assert_eq!(value("dead_mean"), Some(4.0 / 3.0));
        assert_eq!(value("dead_max"), Some(2.0));
        let [late, dead] = ["lateness", "dead"].map(|key| &report.curves[key].points);
        assert_eq!(*late, [[0.0, 0.25], [5.0, 0.5], [80.0, 0.75]]);
        assert_eq!(dead[..2], [[28.05, 1.0], [28.25, 1.0]]);
    }
}
