//! The seeds' experiments: what it costs to find out what has expired, and what readers see of it.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, Result};

use self::plan::{Job, Part};
use crate::caches::kind::Kind;
use crate::child;
use crate::clock;
use crate::heap;
use crate::outcome::Outcome;
use crate::page;
use crate::progress::Progress;
use crate::report::Report;

mod plan;
mod readers;
mod scan;
mod ticks;

/// Options of `seeds`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Parts (default all).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART,…")]
    only: Option<Vec<Part>>,
    /// Numbers of entries (default 1000 to 10000000; readers from 100000 on).
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    entries: Option<Vec<u64>>,
    /// Caches that readers read (default the article's two, every strategy, and tidewheel).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CACHE,…")]
    subjects: Option<Vec<Kind>>,
    /// Readers (default 10).
    #[arg(long)]
    readers: Option<usize>,
    /// Milliseconds between two reads of one reader.
    #[arg(long, default_value_t = 10)]
    pace_ms: u64,
    /// Runs of each measurement (default 3, quick 1).
    #[arg(long)]
    runs: Option<usize>,
    /// Seed of keys and deadlines.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Small sizes and short windows: all of it in less than a minute.
    #[arg(long)]
    quick: bool,
    /// Where the page with the pictures goes.
    #[arg(long, value_name = "FILE", default_value = "seeds.html")]
    out: PathBuf,
    /// The number of the one measurement that a child process makes.
    #[arg(long, hide = true)]
    share: Option<usize>,
}

const QUICK_NOTE: &str = "a quick run: sizes too small and windows too short to quote";
const COUNTED_NOTE: &str = "allocations are counted, two atomic additions each, which all times here \
    contain; build with the feature plain-alloc to leave that out (and bytes)";
const IDLE_WHEEL_NOTE: &str = "in the tables \"as the article ran it\" nothing expires: the readers have \
    finished before the shortest TTL ends";

/// `None` in a process that measures for another.
pub(crate) fn run(args: &Args, progress: &mut Progress) -> Result<Option<Outcome>> {
    let jobs = plan::jobs(args)?;
    if let Some(share) = args.share {
        let job = jobs.get(share).context("there is no such share")?;
        println!("{}", job.measure(args.seed)?.to_json());
        return Ok(None);
    }
    // An hour's figures must not be lost because a page cannot be written.
    File::create(&args.out).with_context(|| format!("cannot write {}", args.out.display()))?;
    let (reports, failures) = measured(&jobs, progress);
    let mut outcome = Outcome::default();
    outcome.failures = failures;
    for (title, cell) in tables(&reports) {
        outcome.push(&title, cell);
    }
    outcome.notes.push(IDLE_WHEEL_NOTE.to_owned());
    if args.quick {
        outcome.notes.push(QUICK_NOTE.to_owned());
    }
    if heap::COUNTED {
        outcome.notes.push(COUNTED_NOTE.to_owned());
    }
    outcome.note_build();
    match page::write(&outcome.lines(), &args.out) {
        Ok(()) => outcome.notes.push(format!(
            "the page with the pictures is {}",
            args.out.display()
        )),
        Err(error) => outcome.failures.push(format!("the page: {error:#}")),
    }
    Ok(Some(outcome))
}

/// Every measurement in a process of its own, with an estimate of what is left.
///
/// One that fails, for want of memory at the largest size perhaps, does not take the others with it.
fn measured(jobs: &[Job], progress: &mut Progress) -> (Vec<Report>, Vec<String>) {
    let mut left = Left::new(jobs);
    let (mut reports, mut failures) = (Vec::new(), Vec::new());
    for (number, job) in jobs.iter().enumerate() {
        progress.step(&job.title(), number, jobs.len(), left.seconds());
        let from_ns = clock::mono_ns();
        match child::measure(&number.to_string()) {
            Ok(report) => reports.push(report),
            Err(error) => failures.push(format!("{}: {error:#}", job.title())),
        }
        left.less(job, (clock::mono_ns() - from_ns) as f64 / 1e9);
    }
    progress.clear();
    (reports, failures)
}

/// How long it still takes: windows of real time are what they are, work is as fast as it was so far.
struct Left {
    windows_s: f64,
    work_s: f64,
    work_expected_s: f64,
    work_took_s: f64,
}

impl Left {
    fn new(jobs: &[Job]) -> Self {
        let sum = |windows: bool| -> f64 {
            let of_kind = jobs.iter().filter(|job| job.is_window() == windows);
            of_kind.map(Job::expected_s).sum()
        };
        Self {
            windows_s: sum(true),
            work_s: sum(false),
            work_expected_s: 0.0,
            work_took_s: 0.0,
        }
    }

    fn less(&mut self, job: &Job, took_s: f64) {
        if job.is_window() {
            self.windows_s -= job.expected_s();
        } else {
            self.work_s -= job.expected_s();
            self.work_expected_s += job.expected_s();
            self.work_took_s += took_s;
        }
    }

    fn seconds(&self) -> f64 {
        let pace = match self.work_expected_s > 0.0 {
            true => self.work_took_s / self.work_expected_s,
            false => 1.0,
        };
        (self.windows_s + self.work_s * pace).max(0.0)
    }
}

/// Reports by experiment and cell, in the order in which they first occur, with a title each.
fn tables(reports: &[Report]) -> Vec<(String, Vec<Report>)> {
    let mut tables: Vec<(String, Vec<Report>)> = Vec::new();
    let experiments = [scan::NAME, ticks::NAME, readers::NAME];
    for experiment in experiments {
        for report in reports
            .iter()
            .filter(|report| report.workload == experiment)
        {
            let title = format!("{experiment}: {}", report.cell);
            match tables.iter_mut().find(|table| table.0 == title) {
                Some(table) => table.1.push(report.clone()),
                None => tables.push((title, vec![report.clone()])),
            }
        }
    }
    tables
}
