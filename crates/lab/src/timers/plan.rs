//! What `timers` and `tasks` share: options, the table of structures, and the courses of one measurement.

use std::fmt;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::course::{Course, Plan};
use super::subject::Subject;
use crate::heap;
use crate::names;
use crate::outcome::Outcome;
use crate::report::Report;
use crate::runner::{Common, Experiment};

/// Ids are 32 bits, and the peers' too.
const MAX_TIMERS: u32 = 1 << 30;
const MAX_DELAY_MS: u32 = 1 << 24;

/// Options of the courses.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    #[command(flatten)]
    common: Common,
    /// The shortest time to a deadline, in ticks of a millisecond (quick: 3000).
    #[arg(long, default_value_t = 30_000)]
    #[arg(default_value_if("quick", "true", "3000"))]
    from_ms: u32,
    /// The longest; deadlines lie before it (quick: 6000).
    #[arg(long, default_value_t = 60_000)]
    #[arg(default_value_if("quick", "true", "6000"))]
    to_ms: u32,
    /// Timer records that one tick may touch in the budgeted course.
    #[arg(long, default_value_t = 2_048)]
    budget: u32,
}

/// A structure to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Structure {
    /// On the command line.
    pub(crate) name: &'static str,
    /// In reports.
    pub(crate) title: &'static str,
    /// In the registry, if it is not ours. Ours alone can be told how much a call may do.
    pub(crate) package: Option<&'static str>,
    /// Makes an empty one for so many.
    pub(crate) build: fn(usize) -> Result<Box<dyn Subject>>,
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title)
    }
}

impl Structure {
    /// The one of that name, for the command line.
    pub(crate) fn named(all: &[Self], name: &str) -> Result<Self, String> {
        let found = all.iter().find(|structure| structure.name == name);
        let known: Vec<&str> = all.iter().map(|structure| structure.name).collect();
        found
            .copied()
            .ok_or_else(|| format!("there are {}", known.join(", ")))
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.package.is_none()
    }

    /// Puts it through all courses.
    pub(crate) fn measure(&self, experiment: &str, plan: &Plan, round: usize) -> Result<Report> {
        let params = json!({
            experiment: plan.timers,
            "from_ms": plan.from_ms,
            "to_ms": plan.to_ms,
            "budget": self.is_ours().then_some(plan.budget),
            "seed": plan.seed,
        });
        let report = Report::new(experiment, params);
        let mut report = report.of(self, names::or_ours(self.package));
        let course = Course::new(plan, plan.seed.wrapping_add(round as u64));
        let build = || (self.build)(plan.timers as usize);
        course.fire(build, &mut report)?;
        course.cancel(build()?, &mut report);
        if self.is_ours() {
            course.fire_on_budget(build()?, &mut report);
        }
        Ok(report)
    }
}

impl Options {
    /// All structures through all courses; `more` measures what an experiment adds.
    pub(crate) fn run(
        &self,
        experiment: &'static str,
        timers: u32,
        structures: &[Structure],
        more: &dyn Fn(Structure, &mut Report) -> Result<()>,
    ) -> Result<Option<Outcome>> {
        let plan = Plan {
            timers,
            from_ms: self.from_ms,
            to_ms: self.to_ms,
            budget: self.budget,
            seed: self.common.seed,
        };
        ensure!(
            (1..=MAX_TIMERS).contains(&plan.timers) && plan.budget > 0,
            "--{experiment} lies in 1..={MAX_TIMERS}, and --budget starts at 1"
        );
        ensure!(
            plan.from_ms > 0 && plan.from_ms < plan.to_ms && plan.to_ms <= MAX_DELAY_MS,
            "--from-ms starts at 1 and lies below --to-ms, which is {MAX_DELAY_MS} at most"
        );
        ensure!(
            heap::COUNTED,
            "{experiment} counts bytes: build the laboratory without the feature plain-alloc"
        );
        let measure = |structure: Structure, _, round| {
            let mut report = structure.measure(experiment, &plan, round)?;
            more(structure, &mut report)?;
            Ok(report)
        };
        let experiment = Experiment {
            name: experiment,
            cells: vec![String::new()],
            subjects: &|_| structures.to_vec(),
            measure: &measure,
        };
        experiment.run(&self.common)
    }
}

/// Adds a parameter.
pub(crate) fn param(report: &mut Report, key: &str, value: impl Into<Value>) {
    report.params[key] = value.into();
}
