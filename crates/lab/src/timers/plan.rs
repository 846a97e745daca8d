//! What the courses of `timers` and `tasks` share: options, rounds, and how a round is noted down.

use std::fmt;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::clock;
use crate::heap;
use crate::outcome::Outcome;
use crate::proc::NoiseMeter;
use crate::progress::Progress;
use crate::report::Report;
use crate::versions;

/// Ids are 32 bits, and the peers' too.
const MAX_TIMERS: u32 = 1 << 30;
const MAX_DELAY_MS: u32 = 1 << 24;
const QUICK_NOTE: &str = "a quick run: too few and too short to quote";

/// Options of the courses.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// The shortest time to a deadline, in ticks of a millisecond (default 30000, quick 3000).
    #[arg(long)]
    from_ms: Option<u32>,
    /// The longest; deadlines lie before it (default 60000, quick 6000).
    #[arg(long)]
    to_ms: Option<u32>,
    /// Timer records that one tick may touch in the budgeted course.
    #[arg(long, default_value_t = 2_048)]
    budget: u32,
    /// Runs per structure (default 3, quick 1).
    #[arg(long)]
    runs: Option<usize>,
    /// Seed of deadlines and orders.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A small run of a few seconds.
    #[arg(long)]
    quick: bool,
}

/// What every course of a run does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) timers: u32,
    pub(crate) from_ms: u32,
    pub(crate) to_ms: u32,
    pub(crate) budget: u32,
    pub(crate) seed: u64,
}

impl Options {
    /// What was asked for, or what a full or a quick run has.
    pub(crate) fn pick(&self, asked: Option<u32>, full: u32, quick: u32) -> u32 {
        asked.unwrap_or(if self.quick { quick } else { full })
    }

    fn runs(&self) -> usize {
        self.runs.unwrap_or(if self.quick { 1 } else { 3 })
    }

    /// The plan for as many as the option `--{experiment}` asks for.
    pub(crate) fn plan(&self, experiment: &str, timers: Option<u32>) -> Result<Plan> {
        let plan = Plan {
            timers: self.pick(timers, 1_000_000, 20_000),
            from_ms: self.pick(self.from_ms, 30_000, 3_000),
            to_ms: self.pick(self.to_ms, 60_000, 6_000),
            budget: self.budget,
            seed: self.seed,
        };
        if plan.timers == 0 || plan.timers > MAX_TIMERS || self.runs() == 0 || plan.budget == 0 {
            bail!("--{experiment} lies in 1..={MAX_TIMERS}, --runs and --budget start at 1");
        }
        if plan.from_ms == 0 || plan.from_ms >= plan.to_ms || plan.to_ms > MAX_DELAY_MS {
            bail!("--from-ms starts at 1 and lies below --to-ms, which is {MAX_DELAY_MS} at most");
        }
        if !heap::COUNTED {
            bail!(
                "{experiment} counts bytes: build the laboratory without the feature plain-alloc"
            );
        }
        Ok(plan)
    }

    /// Every structure, one after the other, round by round; `measure` is told which and the round.
    pub(crate) fn rounds<S: Copy + fmt::Display + ValueEnum>(
        &self,
        experiment: &str,
        structures: Option<&[S]>,
        progress: &mut Progress,
        mut measure: impl FnMut(S, u64, &Progress) -> Result<Report>,
    ) -> Result<Outcome> {
        let runs = self.runs();
        let mut reports = Vec::new();
        for round in 1..=runs {
            for &structure in structures.unwrap_or(S::value_variants()) {
                progress.set_title(format!("{structure} {round}/{runs}"));
                let mut report = measure(structure, round as u64, progress)?;
                report.run = round;
                reports.push(report);
            }
        }
        progress.clear();
        let mut outcome = Outcome::of(experiment, reports);
        if self.quick {
            for report in &mut outcome.reports {
                report.notes.push(QUICK_NOTE.to_owned());
            }
            outcome.notes.push(QUICK_NOTE.to_owned());
        }
        Ok(outcome)
    }
}

/// The version of a package that this program was built with, or of ours.
pub(crate) fn version(package: Option<&str>) -> &'static str {
    package
        .and_then(versions::of)
        .unwrap_or(env!("CARGO_PKG_VERSION"))
}

/// Fills a report in, and notes the noise meanwhile.
pub(crate) fn noted(
    mut report: Report,
    fill: impl FnOnce(&mut Report) -> Result<()>,
) -> Result<Report> {
    let mut noise = NoiseMeter::start(Some(0));
    let start_ns = clock::mono_ns();
    fill(&mut report)?;
    let wall_ns = clock::mono_ns() - start_ns;
    report.figures.push_noise(noise.others_ns(Some(0)), wall_ns);
    Ok(report.finish())
}
