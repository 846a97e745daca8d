//! The logs of a fleet are checked against the promises.

use std::collections::HashMap;

use tidewheel_tasks::Timestamp;

use super::log::{Life, Ran};

/// The bound that was asked for: none later than this, in microseconds.
const LATE: u64 = 5000;

/// The tasks that were scheduled, and the faults of the workers.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) first: Timestamp,
    /// From one task to the next, in microseconds.
    pub(super) gap: u64,
    /// One in so many was cancelled.
    pub(super) cancelled: u64,
    pub(super) tasks: u64,
    pub(super) silences: Vec<Silence>,
}

/// A worker was killed or stopped.
#[derive(Debug)]
pub(super) struct Silence {
    /// Its log.
    pub(super) log: String,
    pub(super) from: Timestamp,
}

impl Silence {
    /// True if the worker had a task when it fell silent, and had not run it. A task that it
    /// claimed when it went on does not count.
    fn held(&self, life: &Life) -> bool {
        let ran = |fence| {
            let mut runs = life.runs.iter();
            runs.any(|run| run.fence == fence && run.at < self.from.0)
        };
        let mut claims = life.claims.iter().filter(|claim| claim.log == self.log);
        claims.any(|claim| claim.at <= self.from.0 && !ran(claim.fence))
    }
}

/// The reason why a first run was late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Why {
    /// It was with a worker that was killed or stopped: nobody else can have it before its lease
    /// ends.
    Held,
    /// Its first delivery reached nobody who claimed it.
    Lost,
    /// It was claimed too late.
    Claimed,
    /// It waited in the wheel of a living worker.
    Local,
}

impl Report {
    pub(super) fn check(&self, engine: &str, lives: &HashMap<u64, Life>) {
        let (mut late, mut again, mut lost) = (Vec::new(), 0, Vec::new());
        for task in 0..self.tasks {
            let nothing = Life::default();
            let life = lives.get(&task).unwrap_or(&nothing);
            if task % self.cancelled == 0 {
                assert_eq!(life.runs, [], "{task} was cancelled");
                continue;
            }
            let Some(first) = life.runs.first() else {
                lost.push(task);
                continue;
            };
            judge(task, life);
            assert_eq!(first.due, self.first.0 + task * self.gap);
            again += life.runs.len() - 1;
            late.push((first.at - first.due, self.why(life, *first)));
        }
        println!("{engine}: {} tasks ran, {again} ran again", late.len());
        print(engine, &late);
        assert_eq!(lost, [0; 0], "tasks never ran");
    }

    /// The reason why a run was late, if it was.
    fn why(&self, life: &Life, first: Ran) -> Option<Why> {
        if first.at - first.due <= LATE {
            return None;
        }
        if self.silences.iter().any(|silence| silence.held(life)) {
            return Some(Why::Held);
        }
        let delivery = life.claims.first().map_or(0, |claim| claim.delivery);
        let mut claims = life.claims.iter();
        let claim = claims.find(|claim| claim.fence == first.fence);
        let in_time = claim.is_some_and(|claim| claim.at + 1000 < first.due);
        Some(match (in_time, delivery) {
            (true, _) => Why::Local,
            (false, 2..) => Why::Lost,
            _ => Why::Claimed,
        })
    }
}

/// Nothing early, and each run under a higher fence than the one before.
fn judge(task: u64, life: &Life) {
    let runs = &life.runs;
    let is_early = runs.iter().any(|run| run.at < run.due);
    assert!(!is_early, "{task} ran early: {life:?}");
    let grows = runs.windows(2).all(|two| two[0].fence < two[1].fence);
    assert!(grows, "{task} ran again without a higher fence: {life:?}");
}

/// The lateness of first runs: all of them, those that no silent worker held, and the rest by
/// reason.
fn print(engine: &str, late: &[(u64, Option<Why>)]) {
    let of = |keep: &dyn Fn(Option<Why>) -> bool| {
        let kept = late.iter().filter(|(_, why)| keep(*why));
        kept.map(|(us, _)| *us).collect::<Vec<_>>()
    };
    quantiles(engine, "all", of(&|_| true));
    let living = of(&|why| why != Some(Why::Held));
    quantiles(engine, "with living workers", living);
    for why in [Why::Held, Why::Lost, Why::Claimed, Why::Local] {
        let name = format!("later than 5 ms, {why:?}");
        quantiles(engine, &name, of(&|of| of == Some(why)));
    }
}

fn quantiles(engine: &str, what: &str, mut late_us: Vec<u64>) {
    late_us.sort_unstable();
    let Some(last) = late_us.len().checked_sub(1) else {
        return;
    };
    let at = |part: f64| late_us[(last as f64 * part) as usize] as f64 / 1000.0;
    let (p50, p90, p99, p999, max) = (at(0.5), at(0.9), at(0.99), at(0.999), at(1.0));
    println!(
        "{engine}, {what}: {} tasks, late by ms: p50 {p50}, p90 {p90}, p99 {p99}, p99.9 {p999}, max {max}",
        last + 1
    );
}
