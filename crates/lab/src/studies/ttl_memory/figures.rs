//! The figures of one mix: every strategy without a limit, every policy under one.

use anyhow::Result;
use clap::ValueEnum;
use serde_json::json;

use super::cell::Cell;
use super::course::{Course, SAMPLE_MS};
use super::limit::Policy;
use super::ours::Ours;
use super::strategy::held as held_by;
use super::table::Table;
use crate::names;
use crate::progress;
use crate::report::{Curve, Report};

/// The assumed interval of the walks of memcached's crawler: it waits from 5 s to an hour.
const SCAN_MS: u64 = 60_000;
pub(super) const CURVE_POINTS: usize = 300;
const BYTES_PER_MB: f64 = 1e6;
const MS_PER_HOUR: f64 = 3_600_000.0;

/// A strategy, or a bound of what any can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Subject {
    /// The live objects: the bound of a strategy that does not know the future.
    Live,
    /// The real cache.
    Tidewheel,
    /// Removed when touched.
    Lazy,
    /// Redis's samples.
    Sampling,
    /// A walk a minute.
    #[value(name = "scan-60s")]
    Scan,
}

/// Every strategy's memory without a limit.
pub(super) fn held(cell: &Cell, seed: u64) -> Result<Vec<Report>> {
    let course = &cell.course;
    let mut reports = Vec::new();
    for subject in Subject::value_variants() {
        progress::say(format!("{}: {subject}", cell.name));
        let samples = match subject {
            Subject::Live => course.live.clone(),
            Subject::Tidewheel => held_by(course, &mut Ours::new(None)?),
            Subject::Lazy => held_by(course, &mut Table::lazy()),
            Subject::Sampling => held_by(course, &mut Table::sampling(seed)),
            Subject::Scan => held_by(course, &mut Table::scan(SCAN_MS)),
        };
        let mut report = cell.report("ttl-memory", &cell.name, subject);
        figures(&mut report, course, &samples);
        reports.push(report);
    }
    Ok(reports)
}

/// The figures of the memory that was held, and of the live objects.
fn figures(report: &mut Report, course: &Course, samples: &[u64]) {
    let mb = |bytes: u64| bytes as f64 / BYTES_PER_MB;
    let mean = |samples: &[u64]| mb(samples.iter().sum()) / samples.len().max(1) as f64;
    let (live, held) = (mean(&course.live), mean(samples));
    let dead = (held >= live && held > 0.0).then(|| (held - live) / held * 100.0);
    let figures = &mut report.figures;
    figures.push("live_mean_mb", live);
    figures.push("held_mean_mb", held);
    figures.push("held_over_live", held / live);
    figures.push("dead_percent", dead);
    let window = samples.len().div_ceil(CURVE_POINTS).max(1);
    let point = |(number, window_samples): (usize, &[u64])| {
        let at_ms = (number * window) as u64 * SAMPLE_MS;
        [at_ms as f64 / MS_PER_HOUR, mean(window_samples)]
    };
    let points = samples.chunks(window).enumerate().map(point).collect();
    let curve = Curve::new("time, h", "held, MB", points);
    report.curves.insert("held".to_owned(), curve);
}

/// Every policy's hits under a limit, with the title of the table.
pub(super) fn limited(cell: &Cell, share: f64) -> Result<(String, Vec<Report>)> {
    let course = &cell.course;
    let capacity = ((course.live_objects_mean * share) as usize).max(1);
    let (name, percent) = (&cell.name, share * 100.0);
    let title = format!("{name}, room for {percent:.0} % of the living");
    let percent = |hits: u64| (course.gets > 0).then(|| hits as f64 * 100.0 / course.gets as f64);
    progress::say(&title);
    let mut reports = Vec::new();
    for policy in Policy::value_variants() {
        let mut report = cell.report("ttl-memory limit", &title, policy);
        report.params["limit_objects"] = json!(capacity);
        report.params["limit_share"] = json!(share);
        let figures = &mut report.figures;
        figures.push("hit_percent", percent(policy.hits(course, capacity)?));
        figures.push("unlimited_hit_percent", percent(course.hits));
        reports.push(report);
    }
    Ok((title, reports))
}

names::display_as_named!(Subject);
