//! Plain-text tables, one column per server.

use crate::report::{Figure, Figures, Report};
use crate::stats;

const GAP: &str = "  ";

/// The runs of one server, side by side with the others'.
#[derive(Clone, Debug)]
pub(crate) struct Column<'a> {
    pub(crate) head: String,
    pub(crate) runs: Vec<&'a Figures>,
}

/// The runs of everything that is compared, a column per subject in the order in which they first occur,
/// with how they were started and their notes below.
pub(crate) fn of_reports(reports: &[Report]) -> String {
    let mut subjects: Vec<&str> = Vec::new();
    for report in reports {
        if !subjects.contains(&report.subject.as_str()) {
            subjects.push(&report.subject);
        }
    }
    let runs_of = |subject: &str| -> Vec<&Report> {
        let own = |report: &&Report| report.subject == subject;
        reports.iter().filter(own).collect()
    };
    let column = |subject: &&str| {
        let runs = runs_of(subject);
        Column {
            head: format!("{subject} (n={})", runs.len()),
            runs: runs.iter().map(|report| &report.figures).collect(),
        }
    };
    let columns: Vec<Column<'_>> = subjects.iter().map(column).collect();
    let mut text = of_columns(&columns);
    for subject in subjects {
        for (at, report) in runs_of(subject).iter().enumerate() {
            if let (0, Some(command)) = (at, &report.command) {
                let name = report
                    .server
                    .as_ref()
                    .and_then(|server| server["name"].as_str());
                let name = name.unwrap_or_default();
                text.push_str(&format!(
                    "{subject} = {name} {}: {command}\n",
                    report.version
                ));
            }
            for note in &report.notes {
                text.push_str(&format!("note: {subject} run {}: {note}\n", report.run));
            }
        }
    }
    text
}

/// Columns of figures; a row per figure, in the order in which they first occur.
pub(crate) fn of_columns(columns: &[Column<'_>]) -> String {
    let mut rows: Vec<&Figure> = Vec::new();
    for figure in columns
        .iter()
        .flat_map(|column| column.runs.iter())
        .flat_map(|f| f.iter())
    {
        if !rows.iter().any(|row| row.key == figure.key) {
            rows.push(figure);
        }
    }
    let mut grid = vec![vec![String::new()]];
    grid[0].extend(columns.iter().map(|column| column.head.clone()));
    for row in rows {
        let mut line = vec![row.label.clone()];
        line.extend(columns.iter().map(|column| cell(&column.runs, row)));
        grid.push(line);
    }
    lay_out(&grid)
}

/// Median (min–max) of one figure over the runs of one server.
fn cell(runs: &[&Figures], row: &Figure) -> String {
    let values: Vec<f64> = runs
        .iter()
        .filter_map(|figures| figures.value(&row.key))
        .collect();
    let missing = runs.len() - values.len();
    let Some(spread) = stats::spread(&values) else {
        return row.absent.text().to_owned();
    };
    let mut text = number(spread.median);
    if number(spread.min) != number(spread.max) {
        text = format!("{text} ({}–{})", number(spread.min), number(spread.max));
    }
    if missing > 0 {
        text = format!("{text}, {} {missing}×", row.absent.text());
    }
    text
}

/// Three digits that matter, whole numbers whole.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if value.fract() == 0.0 || size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 1.0 {
        format!("{value:.2}")
    } else if size >= 0.1 {
        format!("{value:.3}")
    } else {
        format!("{value:.4}")
    }
}

/// The first column to the left, the others to the right.
pub(crate) fn lay_out(grid: &[Vec<String>]) -> String {
    let columns = grid.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        grid.iter()
            .filter_map(|row| row.get(at))
            .map(|text| text.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (at, row) in grid.iter().enumerate() {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
            if column == 0 {
                line = format!("{cell}{pad}");
            } else {
                line = format!("{line}{GAP}{pad}{cell}");
            }
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
    use super::*;

    fn figures(lag: Option<f64>) -> Figures {
        let mut figures = Figures::default();
        figures.push_or_never("lag_ms", "lag ms", lag);
        figures.push("count", "count", 20_000.0);
        figures
    }

    #[test]
    fn a_cell_is_the_median_and_the_range_of_the_runs() {
        let runs = [figures(Some(3.0)), figures(Some(1.0)), figures(Some(2.0))];
        let column = Column {
            head: "ours".to_owned(),
            runs: runs.iter().collect(),
        };
        let text = of_columns(&[column]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].trim_start().starts_with("ours"));
        assert!(
            lines[2].starts_with("lag ms") && lines[2].ends_with("2 (1–3)"),
            "{text}"
        );
        assert!(
            lines[3].starts_with("count") && lines[3].ends_with(" 20000"),
            "{text}"
        );
    }

    #[test]
    fn what_never_happened_says_so_even_when_it_happened_in_other_runs() {
        let (never, once) = (figures(None), figures(Some(1.0)));
        let columns = [
            Column {
                head: "a".to_owned(),
                runs: vec![&never],
            },
            Column {
                head: "b".to_owned(),
                runs: vec![&never, &once],
            },
        ];
        let text = of_columns(&columns);
        let row = text.lines().nth(2).expect("a row");
        assert!(
            row.contains("never") && row.ends_with("1, never 1×"),
            "{row}"
        );
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
