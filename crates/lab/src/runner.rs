//! Runs an experiment over cells, rounds and subjects, each measurement in a process of its own.
//!
//! A fresh process per measurement, so that neither the allocator's state nor a thread that another
//! subject left behind is part of a figure. The child is this program with the same arguments and
//! one more, `--share`, that names its part; it answers with one line of JSON. Subjects alternate
//! (A B A B, not A A B B), so that a machine that slows down slows all.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::clock;
use crate::outcome::Outcome;
use crate::proc::{Meter, NOBODY};
use crate::progress;
use crate::report::Report;

/// The options of every command.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[group(skip)]
pub(crate) struct Basics {
    /// Seed of keys, deadlines and orders.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// A small run of seconds, for a look at whether it works.
    #[arg(long)]
    pub(crate) quick: bool,
}

/// The options of an experiment of processes.
#[derive(Clone, Debug, clap::Args)]
// Experiments add options of their own beside these.
#[group(skip)]
pub(crate) struct Common {
    /// Runs of each (quick: 1).
    #[arg(long, default_value_t = 3, value_parser = count::<usize>)]
    #[arg(default_value_if("quick", "true", "1"))]
    pub(crate) runs: usize,
    #[command(flatten)]
    pub(crate) basics: Basics,
    /// The share of a child process.
    #[arg(long, hide = true)]
    pub(crate) share: Option<String>,
}

/// Reads a number of things: at least one, and no more than a machine could hold.
pub(crate) fn count<N: TryFrom<u32>>(text: &str) -> Result<N, String> {
    within(text, 1..=1 << 30)
}

/// Reads a number of threads.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    within(text, 1..=10_000)
}

fn within<N: TryFrom<u32>>(text: &str, range: RangeInclusive<u32>) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    let number = number.and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| format!("it lies in {range:?}"))
}

/// An experiment that measures one subject at a time.
pub(crate) struct Experiment<'a, S> {
    pub(crate) name: &'static str,
    /// The titles of the measurements of every subject, each with a table of its own.
    pub(crate) cells: Vec<String>,
    /// The subjects of a cell.
    pub(crate) subjects: &'a dyn Fn(usize) -> Vec<S>,
    /// Measures a subject in a cell and a round.
    pub(crate) measure: &'a dyn Fn(S, usize, usize) -> Result<Report>,
}

impl<S: Copy + Display> Experiment<'_, S> {
    /// Runs all shares in child processes; in a child, its own share, and returns `None`.
    ///
    /// One that fails, for want of memory at the largest size perhaps, does not take the others
    /// with it.
    pub(crate) fn run(&self, common: &Common) -> Result<Option<Outcome>> {
        let mut outcome = Outcome::default();
        for (cell, title) in self.cells.iter().enumerate() {
            let mut reports = Vec::new();
            for round in 1..=common.runs {
                for subject in (self.subjects)(cell) {
                    let share = format!("{}/{cell}/{subject}/{round}", self.name);
                    if common.share.as_ref().is_some_and(|own| *own == share) {
                        let report = self.measured(subject, cell, round)?;
                        println!("{}", serde_json::to_string(&report)?);
                        return Ok(None);
                    }
                    if common.share.is_some() {
                        continue;
                    }
                    let runs = common.runs;
                    progress::say(format!("{}: {title}: {subject}, {round}/{runs}", self.name));
                    match in_child(&share) {
                        Ok(report) => reports.push(report),
                        Err(error) => outcome.failures.push(format!("{share}: {error:#}")),
                    }
                }
            }
            if !reports.is_empty() {
                let gap = if title.is_empty() { "" } else { ": " };
                outcome.push(&format!("{}{gap}{title}", self.name), reports);
            }
        }
        if common.basics.quick {
            outcome.note_quick();
        }
        Ok(Some(outcome))
    }

    /// The measurement with what others took of the machine meanwhile.
    fn measured(&self, subject: S, cell: usize, round: usize) -> Result<Report> {
        let mut meter = Meter::start(NOBODY);
        let mut report = (self.measure)(subject, cell, round)?;
        report.figures.push_noise(meter.read());
        report.run = round;
        report.cell.clone_from(&self.cells[cell]);
        report.finished_unix_ms = clock::wall_us() / 1_000;
        Ok(report)
    }
}

/// The report of the child that is given this share.
fn in_child(share: &str) -> Result<Report> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let output = Command::new(program)
        .args(std::env::args_os().skip(1))
        .args(["--share", share])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start a process for the measurement")?;
    if !output.status.success() {
        bail!("the measuring process ended with {}", output.status);
    }
    serde_json::from_slice(&output.stdout).context("the measuring process left something out")
}
