//! One mix or recording, made or read, and resolved.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::course::Course;
use super::mix::{MIXES, Mix};
use super::recorded;
use super::request::MAX_REQUESTS;
use crate::report::Report;

/// Segcache's segments, and the least to which they are scaled down with a mix.
const SEGMENT_BYTES: f64 = 1_048_576.0;
const LEAST_SEGMENT_BYTES: f64 = 65_536.0;
const MS_PER_HOUR: f64 = 3_600_000.0;

/// One mix or recording, ready to be run.
pub(super) struct Cell {
    pub(super) name: String,
    pub(super) recorded: bool,
    pub(super) params: Value,
    /// What a reader must know of the requests.
    pub(super) note: String,
    pub(super) course: Course,
    pub(super) segment_bytes: u64,
}

/// How long and how large a mix is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) hours: f64,
    pub(super) scale: f64,
    pub(super) seed: u64,
}

impl Cell {
    pub(super) fn new(name: &str, size: Size, traces: Option<&Path>) -> Result<Self> {
        if let Some(mix) = Mix::named(name) {
            return Self::made(mix, size);
        }
        let folder = traces.with_context(|| {
            let known: Vec<&str> = MIXES.iter().map(|mix| mix.name.as_str()).collect();
            let known = known.join(", ");
            format!("no mix {name} (there are {known}): recorded requests need --traces")
        })?;
        Self::read(name, size.hours, &csv(folder, name))
    }

    fn made(mix: &Mix, Size { hours, scale, seed }: Size) -> Result<Self> {
        let (name, expected) = (&mix.name, mix.expected(hours, scale));
        ensure!(
            expected <= MAX_REQUESTS as f64,
            "{name} has {expected:.0} requests, more than {MAX_REQUESTS}: lower --hours or --scale"
        );
        let requests = mix.requests(hours, scale, seed);
        ensure!(
            !requests.is_empty(),
            "{name} has no requests in {hours} hours: raise --hours or --scale"
        );
        let segment_bytes = SEGMENT_BYTES * scale / mix.shrink;
        let params = json!({
            "mix": name, "source": mix.source, "recorded": false,
            "hours": hours, "scale": scale, "seed": seed, "requests": requests.len(),
            "published_miss_percent": mix.published_miss_percent,
        });
        Ok(Self {
            name: name.clone(),
            recorded: false,
            params,
            note: format!("made up after {}", mix.source),
            course: Course::of(&requests, (hours * MS_PER_HOUR) as u64),
            segment_bytes: segment_bytes.max(LEAST_SEGMENT_BYTES) as u64,
        })
    }

    fn read(name: &str, hours: f64, path: &Path) -> Result<Self> {
        let requests = recorded::load(path)?;
        let last_ms = requests.last().map_or(0, |request| request.at_ms);
        let (count, last_s) = (requests.len(), last_ms / 1_000);
        let params = json!({
            "mix": name, "recorded": true,
            "hours": hours, "recorded_s": last_s, "requests": count,
        });
        let note = format!(
            "{count} recorded requests of {last_s} s, then no more: nothing but expiry happens"
        );
        let end_ms = (hours * MS_PER_HOUR) as u64;
        Ok(Self {
            name: name.to_owned(),
            recorded: true,
            params,
            note,
            course: Course::of(&requests, end_ms.max(last_ms)),
            segment_bytes: LEAST_SEGMENT_BYTES as u64,
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

/// Where recorded requests of that name are.
pub(super) fn csv(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.csv"))
}
