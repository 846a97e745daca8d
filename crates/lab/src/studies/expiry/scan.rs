//! Measures the time of one walk over everything.
//!
//! A map of text keys, a value and a deadline in each entry, TTLs of 30 to 59 s. Ten scans at the
//! ages of 1 to 10 s, when nothing is due; then ten at the ages of 31 to 40 s, each of which finds
//! the thirtieth of the entries that fell due within its second. Ages are given to the scan: it
//! runs ten times in a row instead of once a second.

use anyhow::Result;
use serde_json::json;

use super::caches::naive_scan::{Map, sweep};
use crate::caches::subject::{Key, Value};
use crate::clock;
use crate::outcome::Outcome;
use crate::report::Report;
use crate::runner::{Common, Experiment};
use crate::stats;

const NAME: &str = "expiry scan";
const SCANS: u64 = 10;
const SECOND_NS: u64 = 1_000_000_000;
/// The TTL of entry `i` is 30 + i % 30 s.
pub(super) const SHORTEST_TTL_S: u64 = 30;
pub(super) const TTLS: u64 = 30;

pub(super) fn run(common: &Common, sizes: &[u64]) -> Result<Option<Outcome>> {
    let experiment = Experiment {
        name: NAME,
        cells: sizes.iter().map(|size| format!("{size} entries")).collect(),
        subjects: &|_| vec!["naive-scan"],
        measure: &|_, cell, _| Ok(measure(sizes[cell])),
    };
    experiment.run(common)
}

fn measure(entries: u64) -> Report {
    let mut map: Map<String, [u8; 32]> = Map::default();
    for id in 0..entries {
        // All are inserted within the first second of the virtual clock.
        let inserted_ns = (u128::from(id) * u128::from(SECOND_NS) / u128::from(entries)) as u64;
        let deadline_ns = inserted_ns + (SHORTEST_TTL_S + id % TTLS) * SECOND_NS;
        map.insert(String::of(id), (<[u8; 32]>::for_key(id), deadline_ns));
    }
    let mut scans = |first_age_s: u64| -> Vec<f64> {
        let scan = |age_s: u64| {
            let from_ns = clock::mono_ns();
            sweep(&mut map, age_s * SECOND_NS);
            (clock::mono_ns() - from_ns) as f64 / 1e6
        };
        (first_age_s..first_age_s + SCANS).map(scan).collect()
    };
    let (idle, expiring) = (scans(1), scans(SHORTEST_TTL_S + 1));
    let removed = entries - map.len() as u64;

    let params = json!({ "entries": entries, "scans": SCANS });
    let mut report = Report::new(NAME, params).of("naive-scan", env!("CARGO_PKG_VERSION"));
    let figures = &mut report.figures;
    figures.push("scan_once_ms", idle.first().copied());
    figures.push("scan_ms", stats::mean(&idle));
    figures.push("scan_expiring_ms", stats::mean(&expiring));
    figures.push("removed_percent", removed as f64 / entries as f64 * 100.0);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_seconds_of_expiry_remove_a_third() {
        let report = measure(3_000);
        let value = |key: &str| report.figures.value(key).expect(key);
        assert!((value("removed_percent") - 100.0 / 3.0).abs() < 0.1);
        assert!(value("scan_ms") > 0.0 && value("scan_expiring_ms") > 0.0);
    }
}
