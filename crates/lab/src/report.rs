//! What an experiment found: figures with names, for the JSON line and for the table.

use serde_json::{Map, Value, json};

use crate::clock;
use crate::machine;
use crate::server::Facts;

/// One number of an experiment.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Name in JSON, with the unit last.
    pub(crate) key: String,
    /// Name in the table.
    pub(crate) label: String,
    pub(crate) value: Option<f64>,
    /// What the table says when there is no value.
    pub(crate) absent: &'static str,
}

/// Figures in the order in which they are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures(Vec<Figure>);

impl Figures {
    /// A figure that may not apply: a dash when there is none.
    pub(crate) fn push(
        &mut self,
        key: impl Into<String>,
        label: impl Into<String>,
        value: impl Into<Option<f64>>,
    ) {
        self.push_or(key, label, value, "–");
    }

    /// A time at which something happened, which may have been never.
    pub(crate) fn push_or_never(
        &mut self,
        key: impl Into<String>,
        label: impl Into<String>,
        value: impl Into<Option<f64>>,
    ) {
        self.push_or(key, label, value, "never");
    }

    fn push_or(
        &mut self,
        key: impl Into<String>,
        label: impl Into<String>,
        value: impl Into<Option<f64>>,
        absent: &'static str,
    ) {
        let value = value.into().filter(|value| value.is_finite());
        self.0.push(Figure {
            key: key.into(),
            label: label.into(),
            value,
            absent,
        });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Figure> {
        self.0.iter()
    }

    pub(crate) fn value(&self, key: &str) -> Option<f64> {
        self.0.iter().find(|figure| figure.key == key)?.value
    }
}

/// The outcome of one run of one workload against one server.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) workload: &'static str,
    /// `None` for experiments without a server.
    pub(crate) server: Option<Facts>,
    pub(crate) params: Map<String, Value>,
    pub(crate) figures: Figures,
    /// What a reader must know to trust the figures.
    pub(crate) notes: Vec<String>,
    finished_unix_ms: i64,
}

impl Report {
    /// `params` is an object, as from `json!({…})`.
    pub(crate) fn new(workload: &'static str, server: Option<Facts>, params: Value) -> Self {
        let params = match params {
            Value::Object(params) => params,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        Self {
            workload,
            server,
            params,
            figures: Figures::default(),
            notes: Vec::new(),
            finished_unix_ms: 0,
        }
    }

    pub(crate) fn finish(mut self) -> Self {
        self.finished_unix_ms = clock::wall_us() / 1_000;
        self
    }

    pub(crate) fn to_json(&self) -> Value {
        let figures: Map<String, Value> = self
            .figures
            .iter()
            .map(|f| (f.key.clone(), json!(f.value)))
            .collect();
        json!({
            "tool": concat!("tidewheel-lab ", env!("CARGO_PKG_VERSION")),
            "workload": self.workload,
            "finished_unix_ms": self.finished_unix_ms,
            "machine": machine::facts(),
            "server": self.server.as_ref().map(Facts::to_json),
            "params": self.params,
            "figures": figures,
            "notes": self.notes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_every_figure_and_keeps_absent_ones_as_null() {
        let mut report = Report::new("sparse", None, json!({"keys": 7}));
        report.figures.push("a_us", "A µs", 1.5);
        report.figures.push_or_never("b_ms", "B ms", None);
        report.figures.push("c", "C", f64::NAN);
        let json = report.finish().to_json();
        assert_eq!(json["workload"], "sparse");
        assert_eq!(json["params"]["keys"], 7);
        assert_eq!(json["figures"]["a_us"], 1.5);
        assert!(json["figures"]["b_ms"].is_null() && json["figures"]["c"].is_null());
        assert!(json["finished_unix_ms"].as_i64().expect("a time") > 0);
        assert!(!json.to_string().contains('\n'));
    }
}
