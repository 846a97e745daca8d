//! What an experiment with caches found: lines for a file, tables for a reader.

use serde_json::Value;

use crate::compare::{Comparison, Series};
use crate::heap;
use crate::report::Report;

/// All tables of an experiment.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    lines: Vec<Value>,
    text: String,
    /// What a reader must know of all tables.
    pub(super) notes: Vec<String>,
}

impl Outcome {
    pub(super) fn push(&mut self, experiment: &'static str, title: &str, series: Vec<Series>) {
        let reports = series.iter().flat_map(|series| &series.reports);
        self.lines.extend(reports.map(Report::to_json));
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&format!("{title}\n"));
        self.text
            .push_str(&Comparison::new(experiment, "subjects", series).to_table());
    }

    /// One line per cache, cell and run.
    pub(crate) fn lines(&self) -> &[Value] {
        &self.lines
    }

    pub(crate) fn text(&self) -> String {
        let mut text = self.text.clone();
        for note in &self.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        if heap::COUNTED {
            text.push_str(
                "note: allocations are counted, two atomic additions each; build with the feature \
                 plain-alloc for throughput and latencies\n",
            );
        }
        text
    }
}
