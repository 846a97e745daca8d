//! The report of one measurement: figures and curves with names, for the JSON line, the table and
//! the page.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::clock;
use crate::machine;
use crate::proc::Taken;

/// The program that wrote a line.
const TOOL: &str = match cfg!(debug_assertions) {
    true => concat!(
        "tidewheel-lab ",
        env!("CARGO_PKG_VERSION"),
        ", built without optimisation"
    ),
    false => concat!("tidewheel-lab ", env!("CARGO_PKG_VERSION")),
};

/// Numbers by name, in the order in which they are shown. A name has its unit last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    figures: Map<String, Value>,
    /// The figures that are the time of something that may never have happened.
    never: Vec<String>,
}

impl Figures {
    /// A figure that may not apply: a dash when there is none.
    pub(crate) fn push(&mut self, key: impl Into<String>, value: impl Into<Option<f64>>) {
        self.figures.insert(key.into(), json!(value.into()));
    }

    /// A time at which something happened, which may have been never.
    pub(crate) fn push_or_never(&mut self, key: &str, value: impl Into<Option<f64>>) {
        self.never.push(key.to_owned());
        self.push(key, value);
    }

    /// The noise of a run.
    pub(crate) fn push_noise(&mut self, taken: Taken) {
        self.push("others_cpu_percent", taken.others_percent());
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.figures.keys().map(String::as_str)
    }

    pub(crate) fn value(&self, key: &str) -> Option<f64> {
        self.figures.get(key)?.as_f64()
    }

    /// The word of a table where there is no value.
    pub(crate) fn absent(&self, key: &str) -> &'static str {
        match self.never.iter().any(|never| never == key) {
            true => "never",
            false => "–",
        }
    }
}

/// Points of one line in a picture, by ascending first coordinate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Curve {
    /// The axes' names, with the unit last.
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) points: Vec<[f64; 2]>,
}

impl Curve {
    pub(crate) fn new(x: &str, y: &str, points: Vec<[f64; 2]>) -> Self {
        let [x, y] = [x, y].map(str::to_owned);
        Self { x, y, points }
    }
}

/// The outcome of one run of one experiment on one subject: a line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    tool: String,
    /// The experiment.
    pub(crate) workload: String,
    /// The table of the experiment; empty where there is one only.
    pub(crate) cell: String,
    /// The subject of the measurement: a server, a cache, a structure.
    pub(crate) subject: String,
    pub(crate) version: String,
    /// Counted from one.
    pub(crate) run: usize,
    /// The command by which a server was started, if it was.
    pub(crate) command: Option<String>,
    pub(crate) finished_unix_ms: i64,
    machine: Value,
    /// A server's facts about itself.
    pub(crate) server: Option<Value>,
    pub(crate) params: Value,
    #[serde(flatten)]
    pub(crate) figures: Figures,
    pub(crate) curves: BTreeMap<String, Curve>,
    /// The facts that a reader must know to trust the figures.
    pub(crate) notes: Vec<String>,
}

impl Report {
    /// Makes a report of Tidewheel, until somebody says otherwise. `params` is an object, as from
    /// `json!({…})`.
    pub(crate) fn new(workload: &str, params: Value) -> Self {
        Self {
            tool: TOOL.to_owned(),
            workload: workload.to_owned(),
            cell: String::new(),
            subject: "tidewheel".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            run: 1,
            command: None,
            finished_unix_ms: clock::wall_us() / 1_000,
            machine: machine::facts(),
            server: None,
            params,
            figures: Figures::default(),
            curves: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// The same of another subject.
    pub(crate) fn of(mut self, subject: impl ToString, version: &str) -> Self {
        self.subject = subject.to_string();
        self.version = version.to_owned();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_comes_back_from_its_line_as_it_was() {
        let mut report = Report::new("sparse", json!({"keys": 7}));
        report.figures.push("a_us", 1.5);
        report.figures.push_or_never("b_ms", None);
        report.figures.push("c", f64::NAN);
        let curve = Curve::new("time, s", "keys", vec![[0.0, 7.0], [1.5, 3.0]]);
        report.curves.insert("held".to_owned(), curve);
        report.notes.push("a note".to_owned());
        let line = serde_json::to_string(&report).expect("JSON");
        assert!(!line.contains('\n') && line.contains(r#""figures":{"a_us":1.5,"b_ms":null"#));
        let read: Report = serde_json::from_str(&line).expect("a report");
        assert_eq!(read, report);
        assert_eq!(
            ["b_ms", "c"].map(|key| read.figures.absent(key)),
            ["never", "–"]
        );
        serde_json::from_str::<Report>(r#"{"workload": "x"}"#).expect_err("no report");
    }
}
