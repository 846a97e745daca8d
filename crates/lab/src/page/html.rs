//! The page as HTML: one file that needs nothing else.

use anyhow::Result;

use super::catalogue;
use super::data::Experiment;
use super::draw::{self, Drawn};
use super::origin;
use super::tables;
use super::{Intro, Table};
use crate::report::Report;

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
        tables::grid(body, &grid.iter().map(cells).collect::<Vec<_>>(), "");
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
    for warnings in &mut of_cells {
        warnings.retain(|warning| !common.contains(warning));
    }
    tables::all(body, experiment, entry.noun, &shared, &of_cells);
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

pub(super) fn warn(body: &mut String, warnings: &[String]) {
    for warning in warnings {
        put(body, &["<p class=\"warning\">", &escape(warning), "</p>\n"]);
    }
}

fn fact(body: &mut String, name: &str, value: &str) {
    if !value.is_empty() {
        put(
            body,
            &["<dt>", name, "</dt><dd>", &escape(value), "</dd>\n"],
        );
    }
}

pub(super) fn put(body: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| body.push_str(part));
}
