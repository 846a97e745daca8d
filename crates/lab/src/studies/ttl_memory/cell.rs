//! A cell is one mix, made and resolved.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::course::Course;
use super::mix::{MIXES, Mix};
use crate::report::Report;

/// Requests of one run at most: about 10 GiB with all that is made of them.
const MAX_REQUESTS: usize = 1 << 26;
const MS_PER_HOUR: f64 = 3_600_000.0;

/// One mix, ready to be run.
pub(super) struct Cell {
    pub(super) name: String,
    params: Value,
    /// The facts about the requests that a reader must know.
    note: String,
    pub(super) course: Course,
}

impl Cell {
    /// Makes so many hours of a mix, `scale` times as large as usual.
    pub(super) fn new(name: &str, hours: f64, scale: f64, seed: u64) -> Result<Self> {
        let mix = Mix::named(name).with_context(|| {
            let known: Vec<&str> = MIXES.iter().map(|mix| mix.name.as_str()).collect();
            format!("no mix {name}: there are {}", known.join(", "))
        })?;
        let expected = mix.expected(hours, scale);
        ensure!(
            expected <= MAX_REQUESTS as f64,
            "{name} has {expected:.0} requests, more than {MAX_REQUESTS}: lower --hours or --scale"
        );
        let requests = mix.requests(hours, scale, seed);
        ensure!(
            !requests.is_empty(),
            "{name} has no requests in {hours} hours: raise --hours or --scale"
        );
        let params = json!({
            "mix": name, "source": mix.source,
            "hours": hours, "scale": scale, "seed": seed, "requests": requests.len(),
            "published_miss_percent": mix.published_miss_percent,
        });
        Ok(Self {
            name: name.to_owned(),
            params,
            note: format!("made up after {}", mix.source),
            course: Course::of(&requests, (hours * MS_PER_HOUR) as u64),
        })
    }

    /// An empty report on a strategy or a policy, for the table of that title.
    pub(super) fn report(&self, workload: &str, title: &str, subject: impl ToString) -> Report {
        let report = Report::new(workload, self.params.clone());
        let mut report = report.of(subject, "");
        if report.subject.starts_with("tidewheel") {
            report.version = env!("CARGO_PKG_VERSION").to_owned();
        }
        report.cell = title.to_owned();
        report.notes.push(self.note.clone());
        report
    }
}
