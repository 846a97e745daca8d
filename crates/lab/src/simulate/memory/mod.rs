//! Memory held over time under times to live, and what the dead cost in hits, both in virtual time.

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};

use self::course::{Course, SAMPLE_MS};
use self::limit::Policy;
use self::mix::{MIXES, Mix};
use self::ours::Ours;
use self::request::Request;
use self::segments::Segments;
use self::strategy::{Ledger, Strategy};
use self::table::Table;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::report::{Curve, Report};

mod course;
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
/// How often memcached's crawler is taken to walk: it waits from 5 s to an hour.
const SCAN_MS: u64 = 60_000;
const MAX_HOURS: f64 = 24.0 * 31.0;
const CURVE_POINTS: usize = 300;
const BYTES_PER_MB: f64 = 1e6;
const MS_PER_HOUR: f64 = 3_600_000.0;

/// Which mixes, how long and how large.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// Memory: mixes of times to live (default all, and the recorded requests in the folder of --traces).
    #[arg(long, value_delimiter = ',', value_name = "MIX,…")]
    mixes: Vec<String>,
    /// Memory: hours of virtual time.
    #[arg(long, default_value_t = 12.0)]
    hours: f64,
    /// Memory: times as many requests and keys as the mixes have here, which is a hundredth of production
    /// or less.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Memory: limits, as shares of the objects that are alive on average.
    #[arg(long, value_delimiter = ',', default_values_t = [0.1, 0.5, 1.0])]
    limits: Vec<f64>,
}

/// Holds what is not bounded by knowledge, or a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// What is alive: the bound of who does not know the future.
    Live,
    /// What will be hit before its end: the bound of who does.
    Needed,
    /// The real cache.
    Tidewheel,
    /// Removed when touched.
    Lazy,
    /// Redis's samples.
    Sampling,
    /// A walk a minute.
    #[value(name = "scan-60s")]
    Scan,
    /// Segcache's segments.
    Segments,
}

/// One mix or recording, ready to be run.
struct Cell {
    name: String,
    params: Value,
    notes: Vec<String>,
    course: Course,
    segment_bytes: u64,
}

pub(super) fn run(
    options: &Options,
    traces: Option<&Path>,
    seed: u64,
    progress: &Progress,
) -> Result<Outcome> {
    let Options { hours, scale, .. } = *options;
    if !(hours > 0.0 && hours <= MAX_HOURS) {
        bail!("--hours {hours}: more than 0 and at most {MAX_HOURS}");
    }
    if !(scale > 0.0 && scale.is_finite()) {
        bail!("--scale {scale}: more than 0");
    }
    if let Some(limit) = options
        .limits
        .iter()
        .find(|limit| limit.is_nan() || **limit <= 0.0)
    {
        bail!("--limits {limit}: more than 0");
    }
    let mut outcome = Outcome::default();
    for name in names(options, traces) {
        progress.phase(format!("{name}: requests"), 1);
        let cell = cell(options, traces, seed, &name)?;
        let reports = held(&cell, seed, progress)?;
        outcome.push(&format!("simulate memory: {name}"), reports);
        for &share in &options.limits {
            let (title, reports) = limited(&cell, share, progress)?;
            outcome.push(&format!("simulate limit: {title}"), reports);
        }
    }
    progress.clear();
    outcome.notes.push(
        "memory: virtual time; bytes of keys and values, not of the structures around them"
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

fn csv(folder: &Path, name: &str) -> std::path::PathBuf {
    folder.join(format!("{name}.csv"))
}

/// Makes the requests of a mix, or reads them, and resolves them.
fn cell(options: &Options, traces: Option<&Path>, seed: u64, name: &str) -> Result<Cell> {
    let end_ms = (options.hours * MS_PER_HOUR) as u64;
    if let Some(mix) = Mix::named(name) {
        let requests = mix.requests(options.hours, options.scale, seed);
        if requests.is_empty() {
            bail!(
                "{name} has no requests in {} hours: raise --hours or --scale",
                options.hours
            );
        }
        let segment_bytes = SEGMENT_BYTES * options.scale / mix.shrink;
        let params = json!({
            "mix": name,
            "source": mix.source,
            "recorded": false,
            "hours": options.hours,
            "scale": options.scale,
            "seed": seed,
            "requests": requests.len(),
        });
        let note = format!("made up after {}", mix.source);
        return Ok(Cell {
            name: name.to_owned(),
            params,
            notes: vec![note],
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
    let last_ms = requests.last().map_or(0, |request: &Request| request.at_ms);
    let params = json!({
        "mix": name,
        "recorded": true,
        "hours": options.hours,
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
        params,
        notes: vec![note],
        course: Course::of(&requests, end_ms.max(last_ms)),
        segment_bytes: LEAST_SEGMENT_BYTES as u64,
    })
}

/// Every strategy's memory without a limit.
fn held(cell: &Cell, seed: u64, progress: &Progress) -> Result<Vec<Report>> {
    let course = &cell.course;
    let mut reports = Vec::new();
    for subject in Subject::value_variants() {
        let strategy: Option<Box<dyn Strategy>> = match subject {
            Subject::Live | Subject::Needed => None,
            Subject::Tidewheel => Some(Box::new(Ours::new()?)),
            Subject::Lazy => Some(Box::new(Table::lazy())),
            Subject::Sampling => Some(Box::new(Table::sampling(seed))),
            Subject::Scan => Some(Box::new(Table::scan(SCAN_MS))),
            Subject::Segments => Some(Box::new(Segments::new(cell.segment_bytes))),
        };
        let name = text(*subject);
        let mut report = Report::new("simulate memory", None, cell.params.clone());
        report.cell.clone_from(&cell.name);
        if *subject != Subject::Tidewheel {
            report.version.clear();
        }
        report.notes.clone_from(&cell.notes);
        match strategy {
            Some(strategy) => {
                progress.phase(format!("{}: {name}", cell.name), course.live.len() as u64);
                let (samples, ledger) = meter::measure(course, strategy, |done| progress.set(done));
                figures(&mut report, course, &samples);
                work(&mut report, course, ledger);
            }
            None if *subject == Subject::Live => figures(&mut report, course, &course.live),
            None => figures(&mut report, course, &course.needed),
        }
        report.subject = name;
        reports.push(report.finish());
    }
    Ok(reports)
}

/// What was held, beside what was alive.
fn figures(report: &mut Report, course: &Course, samples: &[u64]) {
    let mb = |bytes: u64| bytes as f64 / BYTES_PER_MB;
    let mean = |samples: &[u64]| mb(samples.iter().sum()) / samples.len().max(1) as f64;
    let (live, held) = (mean(&course.live), mean(samples));
    let peak = samples.iter().copied().max().map(mb);
    let dead = (held >= live && held > 0.0).then(|| (held - live) / held * 100.0);
    let figures = &mut report.figures;
    figures.push("live_mean_mb", "alive, mean MB", live);
    figures.push("held_mean_mb", "held, mean MB", held);
    figures.push("held_peak_mb", "held, peak MB", peak);
    figures.push("held_over_live", "held / alive", held / live);
    figures.push("dead_percent", "dead % of what is held", dead);
    let window = samples.len().div_ceil(CURVE_POINTS).max(1);
    let point = |(number, window_samples): (usize, &[u64])| {
        let at_ms = (number * window) as u64 * SAMPLE_MS;
        [at_ms as f64 / MS_PER_HOUR, mean(window_samples)]
    };
    report.curves.push(Curve {
        key: "held".to_owned(),
        label: "memory held".to_owned(),
        axes: ["time, h".to_owned(), "held, MB".to_owned()],
        points: samples.chunks(window).enumerate().map(point).collect(),
    });
}

/// How late memory came back, and how many keys were looked at for it.
fn work(report: &mut Report, course: &Course, ledger: Ledger) {
    let Ledger {
        mut late_ms,
        looked,
    } = ledger;
    late_ms.sort_unstable();
    // What never came back is later than anything that did.
    let late_s = |share: f64| {
        let rank = (share * course.expired as f64).ceil() as usize;
        let late_ms = late_ms.get(rank.max(1) - 1);
        late_ms.map(|late_ms| *late_ms as f64 / 1_000.0)
    };
    let work = (course.expired > 0).then(|| looked as f64 / course.expired as f64);
    let figures = &mut report.figures;
    if course.expired > 0 {
        figures.push_or_never("late_p50_s", "freed late p50, s", late_s(0.5));
        figures.push_or_never("late_p99_s", "freed late p99, s", late_s(0.99));
    }
    figures.push("work", "keys looked at per expired key", work);
}

/// Every policy's hits under a limit, with the title of the table.
fn limited(cell: &Cell, share: f64, progress: &Progress) -> Result<(String, Vec<Report>)> {
    let course = &cell.course;
    let capacity = ((course.live_objects_mean * share) as usize).max(1);
    let title = format!(
        "{}, room for {:.0} % of the living",
        cell.name,
        share * 100.0
    );
    let percent = |hits: u64| (course.gets > 0).then(|| hits as f64 * 100.0 / course.gets as f64);
    let policies = Policy::value_variants();
    progress.phase(title.clone(), policies.len() as u64);
    let mut reports = Vec::new();
    for (done, policy) in (1..).zip(policies) {
        let mut params = cell.params.clone();
        params["limit_objects"] = json!(capacity);
        params["limit_share"] = json!(share);
        let mut report = Report::new("simulate limit", None, params);
        report.cell.clone_from(&title);
        if !matches!(policy, Policy::Tidewheel | Policy::TidewheelUndriven) {
            report.version.clear();
        }
        report.subject = text(*policy);
        report.notes.clone_from(&cell.notes);
        let hits = policy.hits(course, capacity)?;
        let figures = &mut report.figures;
        figures.push("hit_percent", "hits %", percent(hits));
        let most = percent(course.hits);
        figures.push("unlimited_hit_percent", "hits % without a limit", most);
        reports.push(report.finish());
        progress.set(done);
    }
    Ok((title, reports))
}

/// The name of a subject or policy on the command line and in reports.
fn text(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(mixes: &[&str]) -> Options {
        Options {
            mixes: mixes.iter().map(|name| (*name).to_owned()).collect(),
            hours: 0.5,
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
        let outcome = run(&options(&["seconds"]), None, 1, &progress).expect("runs");
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
        let again = run(&options(&["seconds"]), None, 1, &progress).expect("runs");
        for (one, other) in outcome.reports.iter().zip(&again.reports) {
            assert_eq!((&one.figures, &one.curves), (&other.figures, &other.curves));
        }
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        let refused = |options: &Options| run(options, None, 1, &Progress::new()).is_err();
        assert!(refused(&options(&["unheard-of"])));
        assert!(refused(&Options {
            hours: 0.0,
            ..options(&["seconds"])
        }));
        assert!(refused(&Options {
            scale: f64::NAN,
            ..options(&["seconds"])
        }));
        assert!(refused(&Options {
            limits: vec![-1.0],
            ..options(&["seconds"])
        }));
    }
}
