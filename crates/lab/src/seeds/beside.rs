//! The article's four tables with ours beside them.

use super::{article, readers, scan};
use crate::machine;
use crate::page::Table;
use crate::report::Report;
use crate::stats;
use crate::table;

const SCAN: &str = "naive-scan";
const WHEEL: &str = "article-wheel";
const OURS: &str = "tidewheel";

/// What the page says above its tables.
pub(super) fn paragraphs(notes: &[String]) -> Vec<String> {
    let mut paragraphs = vec![
        "An article of October 2025 compares two ways to expire the entries of a cache: to walk over all of \
         them once a second, and a ring of one-second slots. Its four tables are measured again here, with the \
         same designs written in Rust, and with nine strategies that are in use under the same load."
            .to_owned(),
        "The article's wheel is measured while nothing expires: its readers read for ten seconds and its \
         shortest TTL is thirty. So each table of readers exists twice, as it was run, and with a thirtieth of \
         all entries expiring in every second, which is the rate that the TTLs amount to. Its machine was \
         another one and its language Go: compare columns of one machine with each other."
            .to_owned(),
        format!("Measured on: {}.", machine::line()),
    ];
    paragraphs.extend(notes.iter().map(|note| format!("Note: {note}.")));
    paragraphs
}

/// Only tables of which something was measured.
pub(super) fn tables(reports: &[Report]) -> Vec<Table> {
    let scans = Table {
        title: "Scan time, one thread".to_owned(),
        note: "The article's tables 1 and 3. In ours \"expiring\" a thirtieth of the entries is removed by each \
               scan; in the article's nothing is due yet."
            .to_owned(),
        grid: grid(
            reports,
            scan::NAME,
            scan::cell,
            &[
                ("article: one scan", article::SCAN, "scan_once_ms", "ms"),
                ("article: average", article::SCAN, "scan_ms", "ms"),
                ("article: one a second", article::SCAN, "cpu_percent", "% of a core"),
                ("ours: one scan", SCAN, "scan_once_ms", "ms"),
                ("ours: average", SCAN, "scan_ms", "ms"),
                ("ours: expiring", SCAN, "scan_expiring_ms", "ms"),
                ("ours: one a second", SCAN, "cpu_percent", "% of a core"),
            ],
        ),
    };
    let as_run = Table {
        title: "Readers, as the article ran them".to_owned(),
        note: format!(
            "The article's tables 2 and 4. {} Nothing expires in any of them.",
            how_read(reports, readers::cell_as_run)
        ),
        grid: grid(
            reports,
            readers::NAME,
            readers::cell_as_run,
            &[
                (
                    "article's scan: one scan",
                    article::SCAN,
                    "sweep_mean_ms",
                    "ms",
                ),
                ("scan here: one scan", SCAN, "sweep_mean_ms", "ms"),
                (
                    "article's scan: average",
                    article::SCAN,
                    "read_mean_us",
                    "µs",
                ),
                ("article's scan: worst", article::SCAN, "read_max_us", "µs"),
                ("scan here: average", SCAN, "read_mean_us", "µs"),
                ("scan here: worst", SCAN, "read_max_us", "µs"),
                (
                    "article's wheel: average",
                    article::WHEEL,
                    "read_mean_us",
                    "µs",
                ),
                (
                    "article's wheel: worst",
                    article::WHEEL,
                    "read_max_us",
                    "µs",
                ),
                ("its wheel here: average", WHEEL, "read_mean_us", "µs"),
                ("its wheel here: worst", WHEEL, "read_max_us", "µs"),
                ("tidewheel: average", OURS, "read_mean_us", "µs"),
                ("tidewheel: worst", OURS, "read_max_us", "µs"),
            ],
        ),
    };
    let fair = Table {
        title: "Readers, with expiry going on".to_owned(),
        note: format!(
            "An open loop on keys drawn uniformly, while a thirtieth of all entries expires each second. {}",
            how_read(reports, readers::cell_fair)
        ),
        grid: grid(
            reports,
            readers::NAME,
            readers::cell_fair,
            &[
                ("scan: average", SCAN, "read_mean_us", "µs"),
                ("scan: p99.9", SCAN, "read_p999_us", "µs"),
                ("scan: worst", SCAN, "read_max_us", "µs"),
                ("article's wheel: average", WHEEL, "read_mean_us", "µs"),
                ("article's wheel: p99.9", WHEEL, "read_p999_us", "µs"),
                ("article's wheel: worst", WHEEL, "read_max_us", "µs"),
                ("tidewheel: average", OURS, "read_mean_us", "µs"),
                ("tidewheel: p99.9", OURS, "read_p999_us", "µs"),
                ("tidewheel: worst", OURS, "read_max_us", "µs"),
                (
                    "tidewheel: worst, nothing expiring",
                    OURS,
                    "control_read_max_us",
                    "µs",
                ),
            ],
        ),
    };
    let mut tables = vec![scans, as_run, fair];
    tables.retain(|table| table.grid[0].len() > 1);
    tables
}

/// As plain text.
pub(super) fn text(tables: &[Table]) -> String {
    let one = |table: &Table| {
        let grid = table::lay_out(&table.grid);
        format!("{}\n{}\n{grid}\n", table.title, table.note)
    };
    tables.iter().map(one).collect()
}

/// How many readers read how often for how long, as the reports of such a cell tell.
fn how_read(reports: &[Report], cell: fn(u64) -> String) -> String {
    let of_cell = |report: &&Report| {
        let size = report.params["entries"].as_u64();
        size.is_some_and(|size| report.cell == cell(size)) && report.params.contains_key("readers")
    };
    let Some(report) = reports.iter().find(of_cell) else {
        return String::new();
    };
    let number = |key: &str| {
        report.params[key]
            .as_f64()
            .map_or_else(String::new, table::number)
    };
    format!(
        "{} readers, {} ms between two reads of each, {} s.",
        number("readers"),
        number("pace_ms"),
        report
            .figures
            .value("window_s")
            .map_or_else(String::new, table::number)
    )
}

/// A row: its head, the subject, the figure's key and unit.
type Row = (&'static str, &'static str, &'static str, &'static str);

/// A column per number of entries that was measured here: a page is higher than wide.
fn grid(
    reports: &[Report],
    workload: &str,
    cell: fn(u64) -> String,
    rows: &[Row],
) -> Vec<Vec<String>> {
    let mut sizes: Vec<u64> = Vec::new();
    let own = |report: &&Report| report.workload == workload && report.version != article::VERSION;
    for report in reports.iter().filter(own) {
        if let Some(size) = report.params["entries"].as_u64()
            && report.cell == cell(size)
            && !sizes.contains(&size)
        {
            sizes.push(size);
        }
    }
    sizes.sort_unstable();
    let value = |size: u64, subject: &str, key: &str| {
        let of_cell = |report: &&Report| {
            (report.workload.as_str(), report.subject.as_str()) == (workload, subject)
                && report.cell == cell(size)
        };
        let runs = reports.iter().filter(of_cell);
        let values: Vec<f64> = runs
            .filter_map(|report| report.figures.value(key))
            .collect();
        let Some(spread) = stats::spread(&values) else {
            return "–".to_owned();
        };
        let [median, min, max] = [spread.median, spread.min, spread.max].map(table::number);
        if min == max {
            median
        } else {
            format!("{median} ({min}–{max})")
        }
    };
    let mut grid = vec![vec!["entries".to_owned()]];
    grid[0].extend(sizes.iter().map(u64::to_string));
    for (head, subject, key, unit) in rows {
        let mut row = vec![format!("{head}, {unit}")];
        row.extend(sizes.iter().map(|&size| value(size, subject, key)));
        grid.push(row);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_article_stands_beside_what_was_measured_and_only_there() {
        let mut reports = article::reports(&[1_000, 10_000]);
        reports.push(scan::measure(1_000).expect("measures"));
        let tables = tables(&reports);
        assert_eq!(tables.len(), 1, "only scans were measured");
        let grid = &tables[0].grid;
        assert_eq!(grid[0], ["entries", "1000"], "one size was measured");
        assert_eq!((grid[1][1].as_str(), grid[2][1].as_str()), ("0.910", "–"));
        assert!(
            grid[4][1].parse::<f64>().is_ok_and(|ms| ms > 0.0),
            "{grid:?}"
        );
        assert!(text(&tables).contains("article: one scan, ms"));
    }
}
