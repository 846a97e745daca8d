//! The tables of an experiment: every figure of every line, a column for each subject.

use super::data::{Cell, Experiment, distinct};
use super::html::{escape, put, warn};
use super::origin;
use crate::report::{Absent, Figure, Report};
use crate::stats;
use crate::table;

/// With more cells than this and no more figures than this in each, one table holds them all.
const MANY_CELLS: usize = 3;
const FEW_FIGURES: usize = 3;

/// A table for each cell, or one for many small ones. `known` are the parameters that are told above.
pub(super) fn all(
    body: &mut String,
    experiment: &Experiment<'_>,
    noun: &str,
    known: &[String],
    warnings: &[Vec<String>],
) {
    let is_small = |cell: &Cell<'_>| cell.figures().len() <= FEW_FIGURES;
    if experiment.cells.len() > MANY_CELLS && experiment.cells.iter().all(is_small) {
        return joint(body, experiment, noun, known, warnings);
    }
    for (cell, warnings) in experiment.cells.iter().zip(warnings) {
        let title = match cell.name {
            "" => "All figures",
            name => name,
        };
        put(body, &["<h3>", &escape(title), "</h3>\n"]);
        for words in settings(cell, known) {
            put(body, &["<p class=\"note\">", &escape(&words), "</p>\n"]);
        }
        warn(body, warnings);
        let subjects = cell.subjects();
        let mut rows = heads(&subjects, noun, &cell.runs);
        for figure in cell.figures() {
            let values = subjects.iter().map(|subject| value(cell, subject, figure));
            rows.push(
                std::iter::once(escape(&figure.label))
                    .chain(values)
                    .collect(),
            );
        }
        grid(body, &rows, "figures");
        list(body, &remarks(cell));
    }
}

/// One table of all cells, with what is to be said of each below it.
fn joint(
    body: &mut String,
    experiment: &Experiment<'_>,
    noun: &str,
    known: &[String],
    warnings: &[Vec<String>],
) {
    body.push_str("<h3>All figures</h3>\n");
    let of_cell = |(cell, own): (&Cell<'_>, &Vec<String>)| -> Vec<String> {
        let said = |warning: &String| format!("{}: {warning}", cell.name);
        own.iter().map(said).collect()
    };
    let cells = || experiment.cells.iter();
    warn(
        body,
        &cells().zip(warnings).flat_map(of_cell).collect::<Vec<_>>(),
    );
    let runs: Vec<&Report> = experiment.runs().collect();
    let mut rows = heads(&experiment.subjects, noun, &runs);
    for cell in cells() {
        for figure in cell.figures() {
            let mut head = escape(cell.name);
            head.push_str(&format!(" <i>{}</i>", escape(&figure.label)));
            let subjects = experiment.subjects.iter();
            let values = subjects.map(|subject| value(cell, subject, figure));
            rows.push(std::iter::once(head).chain(values).collect());
        }
    }
    grid(body, &rows, "figures");
    body.push_str("<details><summary>The settings of each</summary>\n");
    let said = |cell: &Cell<'_>| {
        let parts = settings(cell, known).into_iter().chain(remarks(cell));
        format!("{}: {}", cell.name, parts.collect::<Vec<_>>().join(" · "))
    };
    list(body, &cells().map(said).collect::<Vec<_>>());
    body.push_str("</details>\n");
}

/// The first two rows: names, and versions with the number of runs.
fn heads(subjects: &[&str], noun: &str, runs: &[&Report]) -> Vec<Vec<String>> {
    let mut heads = vec![vec![noun.to_owned()], vec!["version, runs".to_owned()]];
    for subject in subjects {
        let own = || runs.iter().filter(|run| run.subject == *subject);
        let versions = distinct(own().map(|run| run.version.as_str())).join("/");
        let count = |cell: &str| own().filter(|run| run.cell == cell).count();
        let counts = distinct(own().map(|run| count(&run.cell)));
        let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
        let said = format!("{versions}, n = {}", counts.join("/"));
        heads[0].push(escape(subject));
        heads[1].push(escape(said.trim_start_matches(", ")));
    }
    heads
}

/// The parameters of one cell that are not known yet, and those in which its subjects differ.
fn settings(cell: &Cell<'_>, known: &[String]) -> Vec<String> {
    let own = origin::shared(cell.runs.iter().copied(), known).join(" · ");
    let own = (!own.is_empty()).then_some(own);
    let differences = origin::differences(&cell.runs);
    own.into_iter().chain(differences).collect()
}

/// Median (least–greatest) of one figure, and how often there was none.
fn value(cell: &Cell<'_>, subject: &str, figure: &Figure) -> String {
    let own: Vec<&Figure> = cell
        .of(subject)
        .flat_map(|run| run.figures.iter().filter(|own| own.key == figure.key))
        .collect();
    let values: Vec<f64> = own.iter().filter_map(|figure| figure.value).collect();
    let absent = match own.iter().any(|figure| figure.absent == Absent::Never) {
        true => Absent::Never,
        false => Absent::Nothing,
    };
    let Some(spread) = stats::spread(&values) else {
        return absent.text().to_owned();
    };
    let [median, min, max] = [spread.median, spread.min, spread.max].map(table::number);
    let mut text = median;
    if min != max {
        text = format!("{text}<span>{min}–{max}</span>");
    }
    let without = cell.of(subject).count() - values.len();
    if without > 0 {
        text = format!("{text}<span>{} {without}×</span>", absent.text());
    }
    text
}

/// How servers were started and what the runs note.
fn remarks(cell: &Cell<'_>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for subject in cell.subjects() {
        let commands = cell.of(subject).filter_map(|run| run.command.as_deref());
        for command in distinct(commands) {
            lines.push(format!("{subject}: {command}"));
        }
    }
    for note in distinct(cell.runs.iter().flat_map(|run| &run.notes)) {
        let own = cell.runs.iter().filter(|run| run.notes.contains(note));
        let own: Vec<&Report> = own.copied().collect();
        if own.len() == cell.runs.len() {
            lines.push(note.clone());
            continue;
        }
        let of_subject = |subject: &str| {
            let runs = own.iter().filter(|run| run.subject == subject);
            let runs: Vec<String> = runs.map(|run| run.run.to_string()).collect();
            format!("{subject} run {}", runs.join(", "))
        };
        let subjects = distinct(own.iter().map(|run| run.subject.as_str()));
        let subjects: Vec<String> = subjects.into_iter().map(of_subject).collect();
        lines.push(format!("{}: {note}", subjects.join("; ")));
    }
    lines
}

fn list(body: &mut String, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    body.push_str("<ul class=\"note\">\n");
    for line in lines {
        put(body, &["<li>", &escape(line), "</li>\n"]);
    }
    body.push_str("</ul>\n");
}

/// A grid of finished HTML whose first row and first column are heads.
pub(super) fn grid(body: &mut String, grid: &[Vec<String>], class: &str) {
    // A column in which a cell has more letters than digits is read as words, from its left edge.
    let wordy = |text: &String| {
        let count = |kind: fn(char) -> bool| text.chars().filter(|c| kind(*c)).count();
        count(char::is_alphabetic) > count(|c| c.is_ascii_digit()) + 3
    };
    let words = |column: usize| {
        let mut cells = grid.iter().skip(1).filter_map(|row| row.get(column));
        class.is_empty() && cells.any(wordy)
    };
    put(
        body,
        &["<div class=\"wide\"><table class=\"", class, "\">\n"],
    );
    for (at, row) in grid.iter().enumerate() {
        body.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let tag = if at == 0 || column == 0 { "th" } else { "td" };
            let side = if words(column) {
                " class=\"words\""
            } else {
                ""
            };
            put(body, &["<", tag, side, ">", cell, "</", tag, ">"]);
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</table></div>\n");
}
