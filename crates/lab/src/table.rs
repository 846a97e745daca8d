//! Plain-text tables, one column per subject.

use crate::report::Report;
use crate::stats;

const GAP: &str = "  ";

/// The runs of everything that is compared, a column per subject in the order in which they first
/// occur, with how they were started and their notes below.
pub(crate) fn of_reports(reports: &[Report]) -> String {
    let subjects = unique(reports.iter().map(|report| report.subject.as_str()));
    let runs_of = |subject: &str| -> Vec<&Report> {
        reports
            .iter()
            .filter(|report| report.subject == subject)
            .collect()
    };
    let columns: Vec<Vec<&Report>> = subjects.into_iter().map(runs_of).collect();
    let head = |runs: &Vec<&Report>| format!("{} (n={})", runs[0].subject, runs.len());
    let mut grid = vec![vec![String::new()]];
    grid[0].extend(columns.iter().map(head));
    for key in unique(reports.iter().flat_map(|report| report.figures.keys())) {
        let mut row = vec![key.replace('_', " ")];
        row.extend(columns.iter().map(|runs| cell(runs, key)));
        grid.push(row);
    }
    let mut text = lay_out(&grid);
    for Report {
        subject,
        version,
        command,
        server,
        ..
    } in columns.iter().map(|runs| runs[0])
    {
        if let Some((command, server)) = command.as_ref().zip(server.as_ref()) {
            let name = server["name"].as_str().unwrap_or_default();
            text.push_str(&format!("{subject} = {name} {version}: {command}\n"));
        }
    }
    for note in unique(reports.iter().flat_map(|report| &report.notes)) {
        let own = reports.iter().filter(|report| report.notes.contains(note));
        let of_run = |report: &Report| format!("{} run {}", report.subject, report.run);
        let runs: Vec<String> = own.map(of_run).collect();
        match runs.len() == reports.len() {
            true => text.push_str(&format!("note: {note}\n")),
            false => text.push_str(&format!("note: {}: {note}\n", runs.join(", "))),
        }
    }
    text
}

/// Each once, in the order in which they first occur.
fn unique<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

/// Median (min–max) of one figure over the runs of one subject.
fn cell(runs: &[&Report], key: &str) -> String {
    let figures = || runs.iter().map(|run| &run.figures);
    let values: Vec<f64> = figures().filter_map(|figures| figures.value(key)).collect();
    let absent = figures().map(|figures| figures.absent(key));
    let absent = absent.max_by_key(|text| text.len()).unwrap_or_default();
    let Some(spread) = stats::spread(&values) else {
        return absent.to_owned();
    };
    let [median, min, max] = [spread.median, spread.min, spread.max].map(number);
    let text = match min == max {
        true => median,
        false => format!("{median} ({min}–{max})"),
    };
    match runs.len() - values.len() {
        0 => text,
        missing => format!("{text}, {absent} {missing}×"),
    }
}

/// Three digits that matter, whole numbers whole.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if value.fract() == 0.0 || size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.1 => 3,
        _ => 4,
    };
    format!("{value:.digits$}")
}

/// The first column to the left, the others to the right.
fn lay_out(grid: &[Vec<String>]) -> String {
    let columns = grid.iter().map(Vec::len).max().unwrap_or(0);
    let letters = |text: &String| text.chars().count();
    let width = |at: usize| grid.iter().filter_map(|row| row.get(at)).map(letters).max();
    let widths: Vec<usize> = (0..columns).filter_map(width).collect();
    let mut text = String::new();
    for (at, row) in grid.iter().enumerate() {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            line.push_str(&match column {
                0 => format!("{cell:width$}"),
                _ => format!("{GAP}{cell:>width$}"),
            });
        }
        text.push_str(line.trim_end());
        text.push('\n');
        if at == 0 {
            let total = widths.iter().sum::<usize>() + GAP.len() * columns.saturating_sub(1);
            text.push_str(&"─".repeat(total));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(subject: &str, lag: Option<f64>) -> Report {
        let mut report = Report::new("x", json!({})).of(subject, "1");
        report.figures.push_or_never("lag_ms", lag);
        report.figures.push("count", 20_000.0);
        report
    }

    #[test]
    fn a_cell_is_the_median_and_the_range_of_the_runs_and_tells_of_never() {
        let runs = [3.0, 1.0, 2.0].map(|lag| report("ours", Some(lag)));
        let text = of_reports(&runs);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].trim_start().starts_with("ours (n=3)"), "{text}");
        for (line, name, value) in [(2, "lag ms", "2 (1–3)"), (3, "count", " 20000")] {
            assert!(lines[line].starts_with(name), "{text}");
            assert!(lines[line].ends_with(value), "{text}");
        }

        let runs = [report("a", None), report("b", None), report("b", Some(1.0))];
        let text = of_reports(&runs);
        let row = text.lines().nth(2).expect("a row");
        assert!(row.contains("never"), "{row}");
        assert!(row.ends_with("1, never 1×"), "{row}");
    }

    #[test]
    fn numbers_show_the_digits_that_matter() {
        for (value, text) in [
            (0.0, "0"),
            (1_234_567.8, "1234568"),
            (12.34, "12.3"),
            (1.234, "1.23"),
            (0.987_6, "0.988"),
            (0.012_34, "0.0123"),
            (-4_912.1, "-4912"),
            (7.0, "7"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
