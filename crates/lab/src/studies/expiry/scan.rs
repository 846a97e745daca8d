//! How long one walk over everything takes: the article's first and third table.
//!
//! The article's map: text keys, a value and a deadline in each entry, TTLs of 30 to 59 s. Ten scans as
//! the article ran them, at the ages of 1 to 10 s, when nothing is due; then ten at the ages of 31 to
//! 40 s, each of which finds the thirtieth of the entries that fell due within its second. Ages are
//! given to the scan: it runs ten times in a row instead of once a second.

use anyhow::Result;
use serde_json::json;

use crate::caches::naive_scan::{Map, sweep};
use crate::caches::subject::{Key, Value};
use crate::clock;
use crate::proc::OwnNoiseMeter;
use crate::report::Report;
use crate::stats;

pub(super) const NAME: &str = "expiry scan";
/// Names of the figures that the article has too.
pub(super) const ONCE: &str = "one scan, nothing due, ms";
pub(super) const MEAN: &str = "average of ten scans, nothing due, ms";
pub(super) const CPU: &str = "one a second, % of a core";
const SCANS: u64 = 10;
const SECOND_NS: u64 = 1_000_000_000;
/// The TTL of entry `i` is 30 + i % 30 s, as in the article.
pub(super) const SHORTEST_TTL_S: u64 = 30;
pub(super) const TTLS: u64 = 30;

pub(super) fn cell(entries: u64) -> String {
    format!("{entries} entries")
}

pub(super) fn measure(entries: u64) -> Result<Report> {
    let noise = OwnNoiseMeter::start();
    let start_ns = clock::mono_ns();
    let mut map: Map<String, [u8; 32]> = Map::default();
    for id in 0..entries {
        // All are inserted within the first second of the virtual clock.
        let inserted_ns = (u128::from(id) * u128::from(SECOND_NS) / u128::from(entries)) as u64;
        let deadline_ns = inserted_ns + (SHORTEST_TTL_S + id % TTLS) * SECOND_NS;
        map.insert(String::of(id), (<[u8; 32]>::for_key(id), deadline_ns));
    }
    let mut scans = |first_age_s: u64| -> Vec<f64> {
        let mut scan = |age_s: u64| {
            let from_ns = clock::mono_ns();
            sweep(&mut map, age_s * SECOND_NS);
            (clock::mono_ns() - from_ns) as f64 / 1e6
        };
        (first_age_s..first_age_s + SCANS).map(&mut scan).collect()
    };
    let (idle, expiring) = (scans(1), scans(SHORTEST_TTL_S + 1));
    let left = map.len() as u64;
    let wall_ns = clock::mono_ns() - start_ns;

    let params = json!({ "entries": entries, "scans": SCANS });
    let mut report = Report::new(NAME, None, params);
    report.subject = "naive-scan".to_owned();
    report.cell = cell(entries);
    // One scan a second: its milliseconds are tenths of a percent.
    let cpu = |ms: Option<f64>| ms.map(|ms| ms / 10.0);
    let (mean, expiring) = (stats::mean(&idle), stats::mean(&expiring));
    let figures = &mut report.figures;
    figures.push("scan_once_ms", ONCE, idle.first().copied());
    figures.push("scan_ms", MEAN, mean);
    figures.push("cpu_percent", CPU, cpu(mean));
    figures.push(
        "scan_expiring_ms",
        "average while a thirtieth expires, ms",
        expiring,
    );
    figures.push(
        "cpu_expiring_percent",
        "the same, % of a core",
        cpu(expiring),
    );
    let share = (entries - left) as f64 / entries.max(1) as f64 * 100.0;
    report.figures.push(
        "removed_percent",
        "removed by the ten that expire, %",
        share,
    );
    report.figures.push_noise(noise.others_ns(), wall_ns);
    Ok(report.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_seconds_of_expiry_remove_a_third() {
        let report = measure(3_000).expect("measures");
        let value = |key: &str| report.figures.value(key).expect(key);
        assert!((value("removed_percent") - 100.0 / 3.0).abs() < 0.1);
        assert!(value("scan_ms") > 0.0 && value("scan_expiring_ms") > 0.0);
    }
}
