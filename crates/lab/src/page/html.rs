//! The page as HTML: one file that needs nothing else.

use anyhow::Result;

use super::catalogue;
use super::data::{Cell, Experiment, distinct};
use super::draw::{self, Drawn};
use super::origin;
use super::{Intro, Table};
use crate::report::{Absent, Figure, Report};
use crate::stats;
use crate::table;

/// So many pictures of one kind are shown one below the other.
const MOST_UNFOLDED: usize = 3;

const STYLE: &str = include_str!("page.css");

pub(super) fn page(experiments: &[Experiment<'_>], intro: &Intro) -> Result<String> {
    let mut body = String::new();
    head(&mut body, experiments, intro);
    for (at, experiment) in experiments.iter().enumerate() {
        section(&mut body, at, experiment, &draw::pictures(experiment)?);
    }
    let title = escape(&intro.title);
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    ))
}

/// Text as HTML and XML show it.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' => escaped.push(' '),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

fn head(body: &mut String, experiments: &[Experiment<'_>], intro: &Intro) {
    put(body, &["<header>\n<h1>", &escape(&intro.title), "</h1>\n"]);
    for paragraph in &intro.paragraphs {
        put(body, &["<p>", &escape(paragraph), "</p>\n"]);
    }
    if experiments.len() > 1 {
        body.push_str("<nav>");
        for (at, experiment) in experiments.iter().enumerate() {
            let name = escape(experiment.name);
            put(
                body,
                &[
                    "<a href=\"#experiment-",
                    &at.to_string(),
                    "\">",
                    &name,
                    "</a> ",
                ],
            );
        }
        body.push_str("</nav>\n");
    }
    body.push_str("</header>\n");
    for Table { title, note, grid } in &intro.tables {
        put(body, &["<section>\n<h2>", &escape(title), "</h2>\n"]);
        let cells = |row: &Vec<String>| row.iter().map(|cell| escape(cell)).collect();
        grid_of(body, &grid.iter().map(cells).collect::<Vec<_>>(), "");
        if !note.is_empty() {
            put(body, &["<p class=\"note\">", &escape(note), "</p>\n"]);
        }
        body.push_str("</section>\n");
    }
}

fn section(body: &mut String, at: usize, experiment: &Experiment<'_>, drawn: &[Drawn]) {
    let entry = catalogue::entry(experiment.name);
    let id = at.to_string();
    put(body, &["<section id=\"experiment-", &id, "\">\n"]);
    put(body, &["<h2>", &escape(experiment.name), "</h2>\n"]);
    put(body, &["<p>", &escape(entry.about), "</p>\n"]);
    let runs: Vec<&Report> = experiment.runs().collect();
    let machines = origin::machines(runs.iter().copied());
    let machines: Vec<String> = match machines.as_slice() {
        [(one, _)] => vec![one.clone()],
        many => many
            .iter()
            .map(|(machine, lines)| format!("{machine} ({lines} lines)"))
            .collect(),
    };
    let shared = origin::shared(runs.iter().copied(), &[]);
    body.push_str("<dl>\n");
    fact(body, "machine", &machines.join("; "));
    fact(body, "in all runs", &shared.join(" · "));
    body.push_str("</dl>\n");
    let mut of_cells: Vec<Vec<String>> = Vec::new();
    for cell in &experiment.cells {
        of_cells.push(origin::warnings(&cell.runs));
    }
    // What is to be said of every table is said once, above them.
    let mut common = of_cells.first().cloned().unwrap_or_default();
    common.retain(|warning| of_cells.iter().all(|own| own.contains(warning)));
    warn(body, &common);
    for of_one in drawn.chunk_by(|a, b| a.title == b.title) {
        pictures(body, of_one);
    }
    for (cell, mut warnings) in experiment.cells.iter().zip(of_cells) {
        warnings.retain(|warning| !common.contains(warning));
        figures(body, cell, entry.noun, &shared, &warnings);
    }
    body.push_str("</section>\n");
}

/// The same picture of one or several cells; of many, all but the last are folded away.
fn pictures(body: &mut String, drawn: &[Drawn]) {
    let folded = match drawn.len() {
        0..=MOST_UNFOLDED => 0,
        many => many - 1,
    };
    let (folded, open) = drawn.split_at(folded);
    open.iter().for_each(|picture| figure(body, picture));
    if folded.is_empty() {
        return;
    }
    let cells: Vec<String> = folded.iter().map(|picture| escape(&picture.cell)).collect();
    put(
        body,
        &[
            "<details><summary>The same of ",
            &cells.join("; "),
            "</summary>\n",
        ],
    );
    folded.iter().for_each(|picture| figure(body, picture));
    body.push_str("</details>\n");
}

fn figure(body: &mut String, picture: &Drawn) {
    put(body, &["<figure>\n", &picture.svg]);
    let words: Vec<&str> = std::iter::once(picture.caption.as_str())
        .chain(picture.notes.iter().map(String::as_str))
        .filter(|words| !words.is_empty())
        .collect();
    if !words.is_empty() {
        put(
            body,
            &["<figcaption>", &escape(&words.join(" ")), "</figcaption>\n"],
        );
    }
    body.push_str("</figure>\n");
}

fn warn(body: &mut String, warnings: &[String]) {
    for warning in warnings {
        put(body, &["<p class=\"warning\">", &escape(warning), "</p>\n"]);
    }
}

/// Everything that the lines of one cell say.
fn figures(body: &mut String, cell: &Cell<'_>, noun: &str, known: &[String], warnings: &[String]) {
    let title = match cell.name {
        "" => "All figures",
        name => name,
    };
    put(body, &["<h3>", &escape(title), "</h3>\n"]);
    let own = origin::shared(cell.runs.iter().copied(), known);
    let mut quiet = Vec::new();
    if !own.is_empty() {
        quiet.push(own.join(" · "));
    }
    quiet.extend(origin::differences(&cell.runs));
    for words in quiet {
        put(body, &["<p class=\"note\">", &escape(&words), "</p>\n"]);
    }
    warn(body, warnings);
    let subjects = cell.subjects();
    let mut heads = vec![vec![noun.to_owned()], vec!["version, runs".to_owned()]];
    for subject in &subjects {
        let mut versions: Vec<&str> = cell.of(subject).map(|run| run.version.as_str()).collect();
        versions.dedup();
        let said = format!("{}, n = {}", versions.join("/"), cell.of(subject).count());
        heads[0].push(escape(subject));
        heads[1].push(escape(said.trim_start_matches(", ")));
    }
    let mut grid = heads;
    for figure in cell.figures() {
        let mut row = vec![escape(&figure.label)];
        row.extend(subjects.iter().map(|subject| value(cell, subject, figure)));
        grid.push(row);
    }
    grid_of(body, &grid, "figures");
    below(body, cell);
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
fn below(body: &mut String, cell: &Cell<'_>) {
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
    if lines.is_empty() {
        return;
    }
    body.push_str("<ul class=\"note\">\n");
    for line in lines {
        put(body, &["<li>", &escape(&line), "</li>\n"]);
    }
    body.push_str("</ul>\n");
}

/// A grid of finished HTML whose first row and first column are heads.
fn grid_of(body: &mut String, grid: &[Vec<String>], class: &str) {
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

fn fact(body: &mut String, name: &str, value: &str) {
    if !value.is_empty() {
        put(
            body,
            &["<dt>", name, "</dt><dd>", &escape(value), "</dd>\n"],
        );
    }
}

fn put(body: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| body.push_str(part));
}
