//! The samples of a throughput run as rows, ratios and means.

use serde_json::json;

use super::super::kind::Kind;
use super::super::subject::Pass;
use super::{Load, NAME, Plan, ZIPF_EXPONENT};
use crate::heap;
use crate::outcome::Outcome;
use crate::report::Report;
use crate::stats;

/// One cache's samples, by round.
pub(super) struct Row {
    pub(super) kind: Kind,
    rounds: Vec<Vec<Point>>,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    load: Load,
    threads: usize,
    m_per_s: f64,
    hit_percent: f64,
}

impl Row {
    pub(super) fn new(kind: Kind, runs: usize) -> Self {
        Self {
            kind,
            rounds: vec![Vec::new(); runs],
        }
    }

    pub(super) fn add(&mut self, round: usize, load: Load, threads: usize, passes: &[Pass]) {
        let hits: u64 = passes.iter().map(|pass| pass.hits).sum();
        let operations: u64 = passes.iter().map(|pass| pass.operations).sum();
        self.rounds[round].push(Point {
            load,
            threads,
            m_per_s: passes.iter().map(Pass::millions_per_s).sum(),
            hit_percent: hits as f64 / operations.max(1) as f64 * 100.0,
        });
    }
}

/// `noise` is what others took of the machine, and in how long.
pub(super) fn outcome(plan: &Plan, rows: &[Row], noise: (Option<u64>, u64)) -> Outcome {
    let baseline: Option<Vec<Vec<Point>>> = rows
        .iter()
        .find(|row| row.kind.is_baseline())
        .map(|row| row.rounds.clone());
    let mut reports = Vec::new();
    for row in rows {
        for (round, points) in row.rounds.iter().enumerate() {
            let against = baseline.as_ref().map(|rounds| rounds[round].as_slice());
            let mut report = report(plan, row.kind, round + 1, points, against);
            report.figures.push_noise(noise.0, noise.1);
            reports.push(report);
        }
    }
    let title = format!(
        "{NAME}: {} keys of 8 B, values of 32 B, Zipf {ZIPF_EXPONENT}, M operations/s",
        plan.entries
    );
    let mut outcome = Outcome::of(&title, reports);
    if baseline.is_none() {
        outcome
            .notes
            .push("no ratios: quick-cache does not take part".to_owned());
    }
    outcome
}

fn report(
    plan: &Plan,
    kind: Kind,
    run: usize,
    points: &[Point],
    baseline: Option<&[Point]>,
) -> Report {
    let params = json!({
        "entries": plan.entries,
        "zipf": ZIPF_EXPONENT,
        "sample_s": plan.sample.as_secs_f64(),
        "ttl": format!("{:?}", kind.ttl_of()).to_lowercase(),
        "counting_allocator": heap::COUNTED,
        "seed": plan.seed,
    });
    let mut report = Report::new(NAME, params).of(kind, kind.version());
    report.run = run;
    let mut logs: Vec<(Load, f64)> = Vec::new();
    for point in points {
        let name = format!("{}_{}", point.load.name(), point.threads);
        let same = |other: &&Point| (other.load, other.threads) == (point.load, point.threads);
        let other = baseline.and_then(|all| all.iter().find(same));
        let ratio = other.map(|other| point.m_per_s / other.m_per_s);
        report
            .figures
            .push(format!("{name}_m_per_s"), point.m_per_s);
        report.figures.push(format!("{name}_ratio"), ratio);
        logs.extend(ratio.map(|ratio| (point.load, ratio.ln())));
    }
    let geometric = |wanted: &dyn Fn(Load) -> bool| {
        let logs: Vec<f64> = logs
            .iter()
            .filter(|(load, _)| wanted(*load))
            .map(|(_, log)| *log)
            .collect();
        stats::mean(&logs).map(f64::exp)
    };
    for &load in &plan.loads {
        let mean = geometric(&|other| other == load);
        report
            .figures
            .push(format!("{}_ratio_mean", load.name()), mean);
    }
    // The hot key is a case of its own, not a point of the comparison.
    let without_hot = geometric(&|load| load != Load::Hot);
    report.figures.push("ratio_mean", without_hot);
    for load in [Load::Get, Load::Mixed] {
        let own = points.iter().filter(|point| point.load == load);
        let hits: Vec<f64> = own.map(|point| point.hit_percent).collect();
        let name = format!("{}_hit_percent", load.name());
        report.figures.push(name, stats::mean(&hits));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;

    #[test]
    fn ratios_are_taken_point_by_point_within_a_round() {
        let point = |threads, m_per_s| Point {
            load: Load::Get,
            threads,
            m_per_s,
            hit_percent: 100.0,
        };
        let ours = [point(1, 8.0), point(2, 5.0)];
        let theirs = [point(1, 4.0), point(2, 10.0)];
        let report = report(&plan(), Kind::NaiveScan, 1, &ours, Some(&theirs));
        let value = |key: &str| report.figures.value(key).expect(key);
        assert_eq!(value("get_1_ratio"), 2.0);
        assert_eq!(value("get_2_ratio"), 0.5);
        assert!((value("ratio_mean") - 1.0).abs() < 1e-9);
    }
}
