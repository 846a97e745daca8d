//! The outcome of a command: lines for a file, tables for a reader.

use crate::heap;
use crate::machine;
use crate::report::Report;
use crate::table;

const DEBUG_NOTE: &str =
    "built without optimisation: quote no time and no rate of this; build with --release";
const QUICK_NOTE: &str = "a quick run: too small and too short to quote";
const COUNTED_NOTE: &str = "allocations are counted, two atomic additions each, which all times here \
    contain; build with the feature plain-alloc to leave that out (and bytes)";

/// All tables of a command.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) reports: Vec<Report>,
    text: String,
    /// The facts about all tables that a reader must know.
    pub(crate) notes: Vec<String>,
    /// The failed measurements: the rest is kept, and the command fails after it was printed.
    pub(crate) failures: Vec<String>,
}

impl Outcome {
    /// Makes an outcome of one table.
    pub(crate) fn of(title: &str, reports: Vec<Report>) -> Self {
        let mut outcome = Self::default();
        outcome.push(title, reports);
        outcome
    }

    /// Adds a table: all runs of all that are compared in it.
    pub(crate) fn push(&mut self, title: &str, reports: Vec<Report>) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        let (machine, table) = (machine::line(), table::of_reports(&reports));
        let text = format!("{gap}{title}\n{machine}\n{table}");
        self.text.push_str(&text);
        self.reports.extend(reports);
    }

    /// Adds all tables and notes of another.
    pub(crate) fn append(&mut self, other: Self) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text.push_str(&format!("{gap}{}", other.text));
        self.reports.extend(other.reports);
        self.notes.extend(other.notes);
        self.failures.extend(other.failures);
    }

    /// Notes, in the lines as well, that the run is too small to quote.
    pub(crate) fn note_quick(&mut self) {
        for report in &mut self.reports {
            report.notes.push(QUICK_NOTE.to_owned());
        }
        self.notes.push(QUICK_NOTE.to_owned());
    }

    /// Notes that times contain the counting of bytes.
    pub(crate) fn note_counting(&mut self) {
        if heap::COUNTED {
            self.notes.push(COUNTED_NOTE.to_owned());
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = self.text.clone();
        for note in &self.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        if cfg!(debug_assertions) {
            text.push_str(&format!("note: {DEBUG_NOTE}\n"));
        }
        for failure in &self.failures {
            text.push_str(&format!("failed: {failure}\n"));
        }
        text
    }
}
