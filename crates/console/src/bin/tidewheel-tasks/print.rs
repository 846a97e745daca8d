//! Answers in a terminal: a table for people, lines of JSON for programs.

use std::io::{self, Write as _};
use std::process::ExitCode;

use serde_json::{Map, Value};
use tidewheel_tasks::{StoreError, Timestamp};

pub(crate) struct Printer {
    json: bool,
    /// The engine's time.
    now: Timestamp,
    is_missing: bool,
    is_wrong: bool,
}

impl Printer {
    pub(crate) fn new(json: bool, now: Timestamp) -> Self {
        Self {
            json,
            now,
            is_missing: false,
            is_wrong: false,
        }
    }

    /// One thing, a line for each of its members.
    pub(crate) fn one(&mut self, thing: &Value) {
        match thing.as_object() {
            Some(members) if !self.json => {
                for name in in_order(members) {
                    let value = self.text(name, &members[name]);
                    say(&format!("{}: {value}", title(name)));
                }
            }
            _ => say(&line(thing)),
        }
    }

    /// A table.
    pub(crate) fn rows(&mut self, rows: impl Iterator<Item = Value>) {
        let rows: Vec<Value> = rows.collect();
        if self.json {
            rows.iter().for_each(|row| say(&line(row)));
            return;
        }
        let Some(Value::Object(first)) = rows.first() else {
            say("none");
            return;
        };
        let names = in_order(first);
        let head = names.iter().map(|name| title(name).to_owned()).collect();
        let mut table: Vec<Vec<String>> = vec![head];
        table.extend(rows.iter().map(|row| {
            let cells = names
                .iter()
                .map(|name| self.text(name, &row[name.as_str()]));
            cells.collect()
        }));
        let width = |column: usize| {
            let widths = table
                .iter()
                .map(|row: &Vec<String>| row[column].chars().count());
            widths.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..names.len()).map(width).collect();
        for row in &table {
            let cells = row.iter().zip(&widths);
            let cells: Vec<String> = cells
                .map(|(cell, width)| format!("{cell:width$}"))
                .collect();
            say(cells.join("  ").trim_end());
        }
    }

    pub(crate) fn done(&mut self, id: &str, is: &str) {
        match self.json {
            true => say(&line(&serde_json::json!({ "id": id, "done": true }))),
            false => say(&format!("{}: {is}", plain(id))),
        }
    }

    pub(crate) fn not_there(&mut self, id: &str) {
        self.is_missing = true;
        match self.json {
            true => say(&line(&serde_json::json!({ "id": id, "done": false }))),
            false => complain(&format!("{}: it is not there", plain(id))),
        }
    }

    /// Something that could not be done, which is no reason to leave out what comes after it.
    pub(crate) fn failed(&mut self, id: &str, error: &StoreError) {
        self.is_wrong = true;
        let error = error.to_string();
        match self.json {
            true => say(&line(
                &serde_json::json!({ "id": id, "done": false, "error": error }),
            )),
            false => complain(&format!("{}: {}", plain(id), plain(&error))),
        }
    }

    /// A member; a point in time as the time until it, or since.
    fn text(&self, name: &str, value: &Value) -> String {
        match value {
            Value::Null => String::new(),
            Value::Number(us) if name.ends_with("_us") => {
                let at = Timestamp(us.as_u64().unwrap_or(0));
                match at > self.now {
                    true => format!("in {:.1} s", at.since(self.now).as_secs_f64()),
                    false => format!("{:.1} s ago", self.now.since(at).as_secs_f64()),
                }
            }
            Value::String(text) => plain(text),
            Value::Object(limit) => {
                let members = limit.iter().map(|(name, value)| format!("{name}={value}"));
                members.collect::<Vec<_>>().join(" ")
            }
            other => other.to_string(),
        }
    }

    /// 2 after an error, 1 if something was not there.
    pub(crate) fn end(self) -> ExitCode {
        match self.is_wrong {
            true => ExitCode::from(2),
            false => ExitCode::from(u8::from(self.is_missing)),
        }
    }
}

/// The members that are looked for first.
const FIRST: [&str; 6] = ["id", "state", "queue", "due_us", "died_us", "error"];

fn in_order(members: &Map<String, Value>) -> Vec<&String> {
    let mut names: Vec<&String> = members.keys().collect();
    names.sort_by_key(|name| {
        FIRST
            .iter()
            .position(|first| first == name)
            .unwrap_or(FIRST.len())
    });
    names
}

fn title(name: &str) -> &str {
    name.strip_suffix("_us").unwrap_or(name)
}

/// A line, to whoever still reads. A reader that has seen enough is no error.
pub(crate) fn say(line: &str) {
    match writeln!(io::stdout(), "{line}") {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            complain(&format!("the answer cannot be written: {error}"));
            std::process::exit(2);
        }
    }
}

/// An error, to whoever reads them. The exit code says it to who does not.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The text without what commands a terminal: no payload moves its cursor, or turns what follows.
fn plain(text: &str) -> String {
    let shown = |c: char| if commands(c) { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// A line of JSON in which only escapes say such characters: a program reads them as they were.
fn line(value: &Value) -> String {
    let mut line = String::new();
    for c in value.to_string().chars() {
        match commands(c) {
            true => line.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => line.push(c),
        }
    }
    line
}

/// True for control characters, and for those that say which way a text is read.
fn commands(c: char) -> bool {
    let marks = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}');
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || marks || turns
}
