//! The figures that the first article published, as measurements beside ours.
//!
//! "Killing O(n): How Timing Wheels Expire 10 Million Keys", October 2025, measured on an Apple M2 Pro
//! with ten cores and 16 GB.

use serde_json::json;

use super::readers;
use super::scan;
use crate::report::Report;

/// What stands for the article in a column.
pub(super) const SCAN: &str = "article's scan (M2 Pro)";
pub(super) const WHEEL: &str = "article's wheel (M2 Pro)";
/// What stands for a version there.
pub(super) const VERSION: &str = "as published";

/// Entries; one scan, ms (its "scaling analysis").
const SCALING: [(u64, f64); 5] = [
    (1_000, 0.91),
    (10_000, 5.25),
    (100_000, 46.69),
    (1_000_000, 339.87),
    (10_000_000, 6_003.91),
];
/// Entries; the average scan, ms; its share of a core, % ("single-threaded scan").
const SINGLE_THREADED: [(u64, f64, f64); 4] = [
    (10_000, 5.5, 0.5),
    (100_000, 48.6, 4.8),
    (1_000_000, 275.0, 27.5),
    (10_000_000, 2_290.0, 229.0),
];
/// Entries; the average scan, ms; the average and the longest read, µs ("with concurrent reads").
const SCAN_READS: [(u64, f64, f64, f64); 3] = [
    (100_000, 49.0, 470.0, 56_000.0),
    (1_000_000, 258.0, 2_600.0, 288_000.0),
    (10_000_000, 2_670.0, 27_700.0, 4_270_000.0),
];
/// Entries; the average and the longest read, µs ("optimized timing wheel").
const WHEEL_READS: [(u64, f64, f64); 3] = [
    (100_000, 2.3, 900.0),
    (1_000_000, 1.7, 164.0),
    (10_000_000, 3.15, 2_540.0),
];

/// Everything it published about these numbers of entries.
pub(super) fn reports(sizes: &[u64]) -> Vec<Report> {
    let mut reports = Vec::new();
    let wanted = |entries: &u64| sizes.contains(entries);
    for (entries, once_ms) in SCALING.into_iter().filter(|(entries, _)| wanted(entries)) {
        let mut report = report(scan::NAME, scan::cell(entries), SCAN, entries);
        let single = SINGLE_THREADED.iter().find(|single| single.0 == entries);
        let figures = &mut report.figures;
        figures.push("scan_once_ms", scan::ONCE, once_ms);
        figures.push("scan_ms", scan::MEAN, single.map(|single| single.1));
        figures.push("cpu_percent", scan::CPU, single.map(|single| single.2));
        reports.push(report);
    }
    for (entries, scan_ms, mean_us, max_us) in SCAN_READS {
        if wanted(&entries) {
            let mut report = report(readers::NAME, readers::cell_as_run(entries), SCAN, entries);
            report
                .figures
                .push("read_mean_us", "read average µs", mean_us);
            report.figures.push("read_max_us", "read worst µs", max_us);
            report
                .figures
                .push("sweep_mean_ms", "sweep average ms", scan_ms);
            reports.push(report);
        }
    }
    for (entries, mean_us, max_us) in WHEEL_READS {
        if wanted(&entries) {
            let mut report = report(readers::NAME, readers::cell_as_run(entries), WHEEL, entries);
            report
                .figures
                .push("read_mean_us", "read average µs", mean_us);
            report.figures.push("read_max_us", "read worst µs", max_us);
            reports.push(report);
        }
    }
    reports
}

fn report(workload: &str, cell: String, subject: &str, entries: u64) -> Report {
    let mut report = Report::new(workload, None, json!({ "entries": entries }));
    report.cell = cell;
    report.subject = subject.to_owned();
    report.version = VERSION.to_owned();
    report.machine = json!({
        "os": "macos", "arch": "aarch64", "cpu": "Apple M2 Pro", "cores": 10, "memory_mib": 16_384,
    });
    report.finish()
}
