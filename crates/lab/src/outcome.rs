//! What a command found: lines for a file, tables for a reader.

use serde_json::Value;

use crate::machine;
use crate::report::Report;
use crate::table;

const DEBUG_NOTE: &str =
    "built without optimisation: quote no time and no rate of this; build with --release";

/// All tables of a command.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) reports: Vec<Report>,
    text: String,
    /// What a reader must know of all tables.
    pub(crate) notes: Vec<String>,
    /// What could not be measured: the rest is kept, and the command fails after it was printed.
    pub(crate) failures: Vec<String>,
}

impl Outcome {
    /// One table.
    pub(crate) fn of(title: &str, reports: Vec<Report>) -> Self {
        let mut outcome = Self::default();
        outcome.push(title, reports);
        outcome
    }

    /// Adds a table: all runs of all that are compared in it.
    pub(crate) fn push(&mut self, title: &str, reports: Vec<Report>) {
        let table = table::of_reports(&reports);
        self.push_text(title, &table, reports);
    }

    /// Adds a table that its maker laid out, with the reports that it shows.
    pub(crate) fn push_grid(&mut self, title: &str, grid: &[Vec<String>], reports: Vec<Report>) {
        self.push_text(title, &table::lay_out(grid), reports);
    }

    /// Adds all tables and notes of another.
    pub(crate) fn append(&mut self, other: Self) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text.push_str(&format!("{gap}{}", other.text));
        self.reports.extend(other.reports);
        self.notes.extend(other.notes);
        self.failures.extend(other.failures);
    }

    fn push_text(&mut self, title: &str, table: &str, reports: Vec<Report>) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        let machine = machine::line();
        self.text
            .push_str(&format!("{gap}{title}\n{machine}\n{table}"));
        self.reports.extend(reports);
    }

    /// Notes a build whose times say nothing.
    pub(crate) fn note_build(&mut self) {
        if cfg!(debug_assertions) && !self.notes.iter().any(|note| note == DEBUG_NOTE) {
            self.notes.push(DEBUG_NOTE.to_owned());
        }
    }

    /// One line per subject, table and run.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.reports.iter().map(Report::to_json).collect()
    }

    pub(crate) fn text(&self) -> String {
        let mut text = self.text.clone();
        for note in &self.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        for failure in &self.failures {
            text.push_str(&format!("failed: {failure}\n"));
        }
        text
    }
}
