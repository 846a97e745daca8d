//! What one measurement found: figures and curves with names, for the JSON line, the table and the page.

use serde_json::{Map, Value, json};

use crate::clock;
use crate::machine;
use crate::server::Facts;

/// The program that wrote a line.
const TOOL: &str = if cfg!(debug_assertions) {
    concat!(
        "tidewheel-lab ",
        env!("CARGO_PKG_VERSION"),
        ", built without optimisation"
    )
} else {
    concat!("tidewheel-lab ", env!("CARGO_PKG_VERSION"))
};

/// One number of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    /// Name in JSON, with the unit last.
    pub(crate) key: String,
    /// Name in the table.
    pub(crate) label: String,
    pub(crate) value: Option<f64>,
    /// What the table says when there is no value.
    pub(crate) absent: Absent,
}

/// Why a figure has no value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Absent {
    /// It does not apply.
    #[default]
    Nothing,
    /// What it is the time of did not happen.
    Never,
}

impl Absent {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Nothing => "–",
            Self::Never => "never",
        }
    }
}

/// Figures in the order in which they are shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures(Vec<Figure>);

impl Figures {
    /// A figure that may not apply: a dash when there is none.
    pub(crate) fn push(
        &mut self,
        key: impl Into<String>,
        label: impl Into<String>,
        value: impl Into<Option<f64>>,
    ) {
        self.push_or(key, label, value, Absent::Nothing);
    }

    /// A time at which something happened, which may have been never.
    pub(crate) fn push_or_never(
        &mut self,
        key: impl Into<String>,
        label: impl Into<String>,
        value: impl Into<Option<f64>>,
    ) {
        self.push_or(key, label, value, Absent::Never);
    }

    /// What tells how busy the machine was with other things; the clocks behind it are too coarse for
    /// runs of less than a second.
    pub(crate) fn push_noise(&mut self, others_ns: Option<u64>, wall_ns: u64) {
        let percent = |ns: u64| ns as f64 / wall_ns.max(1) as f64 * 100.0;
        self.push(
            "others_cpu_percent",
            "noise: others' CPU, % of a core",
            others_ns.filter(|_| wall_ns >= 1_000_000_000).map(percent),
        );
    }

    fn push_or(
        &mut self,
        key: impl Into<String>,
        label: impl Into<String>,
        value: impl Into<Option<f64>>,
        absent: Absent,
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

/// Points of one line in a picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    /// Name in JSON.
    pub(crate) key: String,
    /// What the picture shows.
    pub(crate) label: String,
    /// What lies along the axes, with the unit last.
    pub(crate) axes: [String; 2],
    /// By ascending first coordinate.
    pub(crate) points: Vec<[f64; 2]>,
}

/// The outcome of one run of one experiment on one subject.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    /// The experiment.
    pub(crate) workload: String,
    /// Which table of the experiment; empty where there is one only.
    pub(crate) cell: String,
    /// What was measured: a server, a cache, a structure.
    pub(crate) subject: String,
    pub(crate) version: String,
    /// Counted from one.
    pub(crate) run: usize,
    /// How a server was started, if it was.
    pub(crate) command: Option<String>,
    /// What a server says of itself.
    pub(crate) server: Option<Value>,
    pub(crate) machine: Value,
    pub(crate) params: Map<String, Value>,
    pub(crate) figures: Figures,
    pub(crate) curves: Vec<Curve>,
    /// What a reader must know to trust the figures.
    pub(crate) notes: Vec<String>,
    finished_unix_ms: i64,
}

impl Report {
    /// `params` is an object, as from `json!({…})`.
    pub(crate) fn new(workload: &str, server: Option<Facts>, params: Value) -> Self {
        let params = match params {
            Value::Object(params) => params,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        let (subject, version) = match &server {
            Some(facts) => (facts.name.clone(), facts.version.clone()),
            None => ("tidewheel".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        };
        Self {
            workload: workload.to_owned(),
            cell: String::new(),
            subject,
            version,
            run: 1,
            command: None,
            server: server.as_ref().map(Facts::to_json),
            machine: machine::facts(),
            params,
            figures: Figures::default(),
            curves: Vec::new(),
            notes: Vec::new(),
            finished_unix_ms: 0,
        }
    }

    pub(crate) fn finish(mut self) -> Self {
        self.finished_unix_ms = clock::wall_us() / 1_000;
        self
    }

    pub(crate) fn to_json(&self) -> Value {
        let of_figures = |value: fn(&Figure) -> Value| -> Map<String, Value> {
            let pair = |figure: &Figure| (figure.key.clone(), value(figure));
            self.figures.iter().map(pair).collect()
        };
        let never: Vec<&str> = self
            .figures
            .iter()
            .filter(|figure| figure.absent == Absent::Never)
            .map(|figure| figure.key.as_str())
            .collect();
        let curves: Map<String, Value> = self
            .curves
            .iter()
            .map(|curve| {
                let [x, y] = &curve.axes;
                let body = json!({ "label": curve.label, "x": x, "y": y, "points": curve.points });
                (curve.key.clone(), body)
            })
            .collect();
        json!({
            "tool": TOOL,
            "workload": self.workload,
            "cell": self.cell,
            "subject": self.subject,
            "version": self.version,
            "run": self.run,
            "command": self.command,
            "finished_unix_ms": self.finished_unix_ms,
            "machine": self.machine,
            "server": self.server,
            "params": self.params,
            "figures": of_figures(|figure| json!(figure.value)),
            "labels": of_figures(|figure| json!(figure.label)),
            "never": never,
            "curves": curves,
            "notes": self.notes,
        })
    }

    /// What [`to_json`](Self::to_json) wrote; `None` for anything else.
    pub(crate) fn from_json(line: &Value) -> Option<Self> {
        let text = |key: &str| line[key].as_str().map(str::to_owned);
        let mut figures = Figures::default();
        let never = line["never"].as_array()?;
        for (key, value) in line["figures"].as_object()? {
            let label = line["labels"][key].as_str()?;
            let absent = match never.iter().any(|never| never == key) {
                true => Absent::Never,
                false => Absent::Nothing,
            };
            figures.push_or(key, label, value.as_f64(), absent);
        }
        let curve = |(key, body): (&String, &Value)| {
            let point = |point: &Value| Some([point[0].as_f64()?, point[1].as_f64()?]);
            Some(Curve {
                key: key.clone(),
                label: body["label"].as_str()?.to_owned(),
                axes: [
                    body["x"].as_str()?.to_owned(),
                    body["y"].as_str()?.to_owned(),
                ],
                points: body["points"]
                    .as_array()?
                    .iter()
                    .map(point)
                    .collect::<Option<_>>()?,
            })
        };
        let notes = line["notes"].as_array()?.iter();
        Some(Self {
            workload: text("workload")?,
            cell: text("cell")?,
            subject: text("subject")?,
            version: text("version")?,
            run: usize::try_from(line["run"].as_u64()?).ok()?,
            command: text("command"),
            server: line
                .get("server")
                .filter(|server| server.is_object())
                .cloned(),
            machine: line["machine"].clone(),
            params: line["params"].as_object()?.clone(),
            figures,
            curves: line["curves"]
                .as_object()?
                .iter()
                .map(curve)
                .collect::<Option<_>>()?,
            notes: notes
                .map(|note| Some(note.as_str()?.to_owned()))
                .collect::<Option<_>>()?,
            finished_unix_ms: line["finished_unix_ms"].as_i64()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report = Report::new("sparse", None, json!({"keys": 7}));
        report.figures.push("a_us", "A µs", 1.5);
        report.figures.push_or_never("b_ms", "B ms", None);
        report.figures.push("c", "C", f64::NAN);
        report.curves.push(Curve {
            key: "held".to_owned(),
            label: "keys held".to_owned(),
            axes: ["time, s".to_owned(), "keys".to_owned()],
            points: vec![[0.0, 7.0], [1.5, 3.0]],
        });
        report.notes.push("a note".to_owned());
        report
    }

    #[test]
    fn json_names_every_figure_and_keeps_absent_ones_as_null() {
        let json = report().finish().to_json();
        assert_eq!(json["workload"], "sparse");
        assert_eq!(json["params"]["keys"], 7);
        assert_eq!(json["figures"]["a_us"], 1.5);
        assert!(json["figures"]["b_ms"].is_null() && json["figures"]["c"].is_null());
        assert!(json["finished_unix_ms"].as_i64().expect("a time") > 0);
        assert!(!json.to_string().contains('\n'));
    }

    #[test]
    fn a_report_comes_back_from_its_line_as_it_was() {
        let report = report().finish();
        let line = report.to_json().to_string();
        let back = Report::from_json(&serde_json::from_str(&line).expect("JSON"));
        assert_eq!(back, Some(report));
        for no_report in ["{}", "7", r#"{"workload": "x"}"#] {
            let value = serde_json::from_str(no_report).expect("JSON");
            assert_eq!(Report::from_json(&value), None, "{no_report}");
        }
    }
}
