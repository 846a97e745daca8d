//! Memory held over time under times to live, and what the dead cost in hits, both in virtual time.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::course::Course;
use self::figures::MS_PER_HOUR;
use self::mix::{MIXES, Mix};
use self::request::MAX_REQUESTS;
use crate::outcome::Outcome;
use crate::progress::Progress;

mod course;
mod figures;
mod limit;
mod meter;
mod mix;
mod ours;
mod recorded;
mod request;
mod segments;
mod strategy;
mod table;

/// Recorded requests that are replayed from the folder of traces, if they are there.
const RECORDED: [&str; 2] = ["kvcache-1", "kvcache-2"];
/// Segcache's segments, and the least to which they are scaled down with a mix.
const SEGMENT_BYTES: f64 = 1_048_576.0;
const LEAST_SEGMENT_BYTES: f64 = 65_536.0;
const MAX_HOURS: f64 = 24.0 * 31.0;

/// Which mixes, how long and how large.
#[derive(Clone, Debug, clap::Args)]
// Two structures of one name would be two groups of one name.
#[group(skip)]
pub(super) struct Options {
    /// Memory: mixes of times to live (default all, and the recorded requests in the folder of --traces).
    #[arg(long, value_delimiter = ',', value_name = "MIX,…")]
    mixes: Vec<String>,
    /// Memory: hours of virtual time (default 12, quick 1).
    #[arg(long)]
    hours: Option<f64>,
    /// Memory: times as many requests and keys as the mixes have here, which is a hundredth of production
    /// or less.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Memory: limits, as shares of the objects that are alive on average.
    #[arg(long, value_delimiter = ',', value_name = "SHARE,…", default_values_t = [0.1, 0.5, 1.0])]
    limits: Vec<f64>,
}

impl Options {
    /// Whether something was asked for that has no default.
    pub(super) fn asked(&self) -> bool {
        !self.mixes.is_empty() || self.hours.is_some()
    }
}

/// One mix or recording, ready to be run.
struct Cell {
    name: String,
    recorded: bool,
    params: Value,
    /// What a reader must know of the requests.
    note: String,
    course: Course,
    segment_bytes: u64,
}

pub(super) fn run(
    options: &Options,
    traces: Option<&Path>,
    seed: u64,
    quick: bool,
    progress: &Progress,
) -> Result<Outcome> {
    let hours = options.hours.unwrap_or(if quick { 1.0 } else { 12.0 });
    let scale = options.scale;
    if !(hours > 0.0 && hours <= MAX_HOURS) {
        bail!("--hours {hours}: more than 0 and at most {MAX_HOURS}");
    }
    if !(scale > 0.0 && scale.is_finite()) {
        bail!("--scale {scale}: more than 0");
    }
    if let Some(limit) = options
        .limits
        .iter()
        .find(|limit| !limit.is_finite() || **limit <= 0.0)
    {
        bail!("--limits {limit}: more than 0");
    }
    let mut outcome = Outcome::default();
    for name in names(options, traces) {
        progress.phase(format!("{name}: requests"), 1);
        let cell = cell(options, hours, traces, seed, &name)?;
        let reports = figures::held(&cell, seed, progress)?;
        let title = format!("ttl-memory: {name}; {}", cell.note);
        outcome.push_grid(&title, &figures::grid(&reports), reports);
        // A few dozen recorded objects are too few to choose among.
        let limits: &[f64] = if cell.recorded { &[] } else { &options.limits };
        for &share in limits {
            let (title, reports) = figures::limited(&cell, share, progress)?;
            let title = format!("ttl-memory limit: {title}");
            outcome.push_grid(&title, &figures::grid(&reports), reports);
        }
    }
    progress.clear();
    outcome.notes.push(
        "memory: virtual time; bytes of keys and values, not of the structures around them"
            .to_owned(),
    );
    outcome.notes.push(
        "memory: lateness is of what died in the first three quarters; never: not by the end of the run"
            .to_owned(),
    );
    if traces.is_none() && options.mixes.is_empty() {
        outcome.notes.push(
            "memory: mixes made up after published statistics, no recorded requests".to_owned(),
        );
    }
    Ok(outcome)
}

/// What is run: what was asked for, or all mixes and the recordings that are there.
fn names(options: &Options, traces: Option<&Path>) -> Vec<String> {
    if !options.mixes.is_empty() {
        return options.mixes.clone();
    }
    let is_there = |name: &&str| traces.is_some_and(|folder| csv(folder, name).is_file());
    let mixes = MIXES.iter().map(|mix| mix.name);
    mixes
        .chain(RECORDED.into_iter().filter(is_there))
        .map(str::to_owned)
        .collect()
}

fn csv(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.csv"))
}

/// Makes the requests of a mix, or reads them, and resolves them.
fn cell(
    options: &Options,
    hours: f64,
    traces: Option<&Path>,
    seed: u64,
    name: &str,
) -> Result<Cell> {
    let end_ms = (hours * MS_PER_HOUR) as u64;
    if let Some(mix) = Mix::named(name) {
        let expected = mix.expected(hours, options.scale);
        if expected > MAX_REQUESTS as f64 {
            bail!(
                "{name} has {expected:.0} requests, more than {MAX_REQUESTS}: lower --hours or --scale"
            );
        }
        let requests = mix.requests(hours, options.scale, seed);
        if requests.is_empty() {
            bail!(
                "{name} has no requests in {} hours: raise --hours or --scale",
                hours
            );
        }
        let segment_bytes = SEGMENT_BYTES * options.scale / mix.shrink;
        let params = json!({
            "mix": name,
            "source": mix.source,
            "recorded": false,
            "hours": hours,
            "scale": options.scale,
            "seed": seed,
            "requests": requests.len(),
            "published_miss_percent": mix.published_miss_percent,
        });
        let note = format!("made up after {}", mix.source);
        return Ok(Cell {
            name: name.to_owned(),
            recorded: false,
            params,
            note,
            course: Course::of(&requests, end_ms),
            segment_bytes: segment_bytes.max(LEAST_SEGMENT_BYTES) as u64,
        });
    }
    let folder = traces.with_context(|| {
        let known: Vec<&str> = MIXES.iter().map(|mix| mix.name).collect();
        format!(
            "no mix {name} (there are {}): recorded requests need --traces",
            known.join(", ")
        )
    })?;
    let requests = recorded::load(&csv(folder, name))?;
    let last_ms = requests.last().map_or(0, |request| request.at_ms);
    let params = json!({
        "mix": name,
        "recorded": true,
        "hours": hours,
        "recorded_s": last_ms / 1_000,
        "requests": requests.len(),
    });
    let note = format!(
        "{} recorded requests of {} s, then no more: nothing but expiry happens",
        requests.len(),
        last_ms / 1_000
    );
    Ok(Cell {
        name: name.to_owned(),
        recorded: true,
        params,
        note,
        course: Course::of(&requests, end_ms.max(last_ms)),
        segment_bytes: LEAST_SEGMENT_BYTES as u64,
    })
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::figures::{CURVE_POINTS, Subject};
    use super::limit::Policy;
    use super::*;

    fn options(mixes: &[&str]) -> Options {
        Options {
            mixes: mixes.iter().map(|name| (*name).to_owned()).collect(),
            hours: Some(0.5),
            scale: 0.2,
            limits: vec![0.5],
        }
    }

    fn value(outcome: &Outcome, subject: &str, key: &str) -> Option<f64> {
        let mut reports = outcome.reports.iter();
        reports
            .find(|report| report.subject == subject)?
            .figures
            .value(key)
    }

    #[test]
    fn a_mix_gives_a_report_for_every_strategy_and_policy() {
        let progress = Progress::new();
        let outcome = run(&options(&["seconds"]), None, 1, false, &progress).expect("runs");
        let subjects = Subject::value_variants().len() + Policy::value_variants().len();
        assert_eq!(outcome.reports.len(), subjects);
        let ours = value(&outcome, "tidewheel", "held_over_live").expect("a ratio");
        assert!((ours - 1.0).abs() < 1e-9, "{ours}");
        let lazy = value(&outcome, "lazy", "held_over_live").expect("a ratio");
        assert!(lazy > 2.0, "{lazy}");
        assert!(value(&outcome, "scan-60s", "late_p50_s") > Some(10.0));
        for report in &outcome.reports {
            assert!(!report.notes.is_empty());
            for curve in &report.curves {
                assert!((2..=CURVE_POINTS).contains(&curve.points.len()));
            }
        }
        let again = run(&options(&["seconds"]), None, 1, false, &progress).expect("runs");
        for (one, other) in outcome.reports.iter().zip(&again.reports) {
            assert_eq!((&one.figures, &one.curves), (&other.figures, &other.curves));
        }
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        let refused = |options: &Options| run(options, None, 1, false, &Progress::new()).is_err();
        assert!(refused(&options(&["unheard-of"])));
        assert!(refused(&Options {
            hours: Some(0.0),
            ..options(&["seconds"])
        }));
        assert!(refused(&Options {
            scale: f64::NAN,
            ..options(&["seconds"])
        }));
        assert!(refused(&Options {
            scale: 1e9,
            ..options(&["seconds"])
        }));
        assert!(refused(&Options {
            limits: vec![-1.0],
            ..options(&["seconds"])
        }));
    }

    #[test]
    fn recorded_requests_are_replayed_and_time_goes_on_after_them() {
        let folder = std::env::temp_dir().join(format!("tidewheel-memory-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let text = "op_time,key,key_size,op,size,ttl\n70,a,1,SET,999999,60\n71,a,1,GET,999999,0\n";
        std::fs::write(csv(&folder, "small"), text).expect("a file");
        let outcome = run(
            &options(&["small"]),
            Some(&folder),
            1,
            false,
            &Progress::new(),
        );
        std::fs::remove_dir_all(&folder).expect("removed");
        let outcome = outcome.expect("runs");
        // A megabyte for 60 of the 1,801 samples, but for one of them without need.
        for (subject, held_mb) in [
            ("live", 60.0),
            ("needed", 1.0),
            ("tidewheel", 60.0),
            ("lazy", 1_801.0),
        ] {
            let held = value(&outcome, subject, "held_mean_mb").expect("a mean");
            assert!((held * 1_801.0 - held_mb).abs() < 1e-6, "{subject}: {held}");
        }
        assert_eq!(value(&outcome, "scan-60s", "late_p50_s"), Some(0.0));
        // No tables of limits: there is nothing to choose among.
        assert!(
            outcome
                .reports
                .iter()
                .all(|report| report.workload == "ttl-memory")
        );
    }
}
