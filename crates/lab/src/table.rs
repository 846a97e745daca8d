//! Plain-text tables, one column per subject.

use crate::report::{Figures, Report};
use crate::stats;

const GAP: &str = "  ";

/// The runs of everything that is compared, a column per subject in the order in which they first occur,
/// with how they were started and their notes below.
pub(crate) fn of_reports(reports: &[Report]) -> String {
    let columns: Vec<(&str, Vec<&Report>)> = unique(reports.iter().map(|r| r.subject.as_str()))
        .into_iter()
        .map(|subject| {
            (
                subject,
                reports.iter().filter(|r| r.subject == subject).collect(),
            )
        })
        .collect();
    let mut grid = vec![vec![String::new()]];
    let head = |(subject, runs): &(&str, Vec<&Report>)| format!("{subject} (n={})", runs.len());
    grid[0].extend(columns.iter().map(head));
    for key in unique(reports.iter().flat_map(|report| report.figures.keys())) {
        let mut row = vec![key.replace('_', " ")];
        row.extend(
            columns
                .iter()
                .map(|(_, runs)| cell(runs.iter().map(|r| &r.figures), key)),
        );
        grid.push(row);
    }
    let mut text = lay_out(&grid);
    for (subject, runs) in &columns {
        if let Some((command, server)) = runs[0].command.as_ref().zip(runs[0].server.as_ref()) {
            let (name, version) = (server["name"].as_str(), &runs[0].version);
            let name = name.unwrap_or_default();
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
pub(crate) fn unique<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

/// Median (min–max) of one figure over the runs of one subject.
fn cell<'a>(runs: impl Iterator<Item = &'a Figures> + Clone, key: &str) -> String {
    let values: Vec<f64> = runs.clone().filter_map(|run| run.value(key)).collect();
    let absent = runs
        .clone()
        .map(|run| run.absent(key))
        .max_by_key(|text| text.len());
    let absent = absent.unwrap_or_default();
    let Some(spread) = stats::spread(&values) else {
        return absent.to_owned();
    };
    let [median, min, max] = [spread.median, spread.min, spread.max].map(number);
    let mut text = median;
    if min != max {
        text = format!("{text} ({min}–{max})");
    }
    match runs.count() - values.len() {
        0 => text,
        missing => format!("{text}, {absent} {missing}×"),
    }
}

/// Three digits that matter, whole numbers whole.
pub(crate) fn number(value: f64) -> String {
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
pub(crate) fn lay_out(grid: &[Vec<String>]) -> String {
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
        assert!(
            lines[2].starts_with("lag ms") && lines[2].ends_with("2 (1–3)"),
            "{text}"
        );
        assert!(
            lines[3].starts_with("count") && lines[3].ends_with(" 20000"),
            "{text}"
        );

        let runs = [report("a", None), report("b", None), report("b", Some(1.0))];
        let text = of_reports(&runs);
        let row = text.lines().nth(2).expect("a row");
        assert!(
            row.contains("never") && row.ends_with("1, never 1×"),
            "{row}"
        );
    }

    #[test]
    fn numbers_show_the_digits_that_matter() {
        let values = [
            0.0,
            1_234_567.8,
            12.34,
            1.234,
            0.987_6,
            0.012_34,
            -4_912.1,
            7.0,
        ];
        let texts = [
            "0", "1234568", "12.3", "1.23", "0.988", "0.0123", "-4912", "7",
        ];
        assert_eq!(values.map(number), texts);
    }
}
