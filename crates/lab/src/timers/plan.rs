//! What `timers` and `tasks` share: options, the table of structures, and the courses of one measurement.

use std::fmt;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::course::{Course, Plan};
use super::subject::Subject;
use crate::heap;
use crate::names;
use crate::outcome::Outcome;
use crate::report::Report;
use crate::runner::{Common, Experiment, count};

/// Deadlines lie from so many ticks of a millisecond ahead to so many.
const DELAY_MS: (u32, u32) = (30_000, 60_000);
const QUICK_MS: (u32, u32) = (3_000, 6_000);
/// Timer records that one tick may touch in the budgeted course.
const BUDGET: u32 = 2_048;

/// Options of the courses.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    #[command(flatten)]
    common: Common,
    /// How many (quick: 20000).
    #[arg(long = "timers", visible_alias = "tasks", value_name = "N", value_parser = count::<u32>)]
    #[arg(
        default_value_t = 1_000_000,
        default_value_if("quick", "true", "20000")
    )]
    timers: u32,
    /// Structures, by name (default all that were built).
    #[arg(long, value_delimiter = ',', value_name = "STRUCTURE,…")]
    structures: Option<Vec<String>>,
}

/// What builds an empty structure with room for so many.
type Build = fn(usize) -> Result<Box<dyn Subject>>;

/// A structure to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Structure {
    /// On the command line.
    pub(crate) name: &'static str,
    /// In reports.
    title: &'static str,
    /// In the registry, if it is not ours. Ours alone can be told how much a call may do.
    package: Option<&'static str>,
    pub(crate) build: Build,
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title)
    }
}

impl Structure {
    pub(crate) const fn ours(name: &'static str, title: &'static str, build: Build) -> Self {
        Self {
            name,
            title,
            package: None,
            build,
        }
    }

    /// One of somebody else's, in a package of that name.
    #[cfg(feature = "peers")]
    pub(crate) const fn peer(
        name: &'static str,
        title: &'static str,
        package: &'static str,
        build: Build,
    ) -> Self {
        Self {
            package: Some(package),
            ..Self::ours(name, title, build)
        }
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
    /// The structures of `all` that are asked for.
    fn chosen(&self, all: &[Structure]) -> Result<Vec<Structure>> {
        let Some(names) = &self.structures else {
            return Ok(all.to_vec());
        };
        let find = |name: &String| {
            let found = all.iter().find(|structure| structure.name == name);
            let known: Vec<&str> = all.iter().map(|structure| structure.name).collect();
            found
                .copied()
                .with_context(|| format!("--structures: there are {}", known.join(", ")))
        };
        names.iter().map(find).collect()
    }

    /// Structures through all courses; `more` measures what an experiment adds.
    pub(crate) fn run(
        &self,
        experiment: &'static str,
        all: &[Structure],
        more: &dyn Fn(Structure, &mut Report) -> Result<()>,
    ) -> Result<Option<Outcome>> {
        let (from_ms, to_ms) = if self.common.quick {
            QUICK_MS
        } else {
            DELAY_MS
        };
        let plan = Plan {
            timers: self.timers,
            from_ms,
            to_ms,
            budget: BUDGET,
            seed: self.common.seed,
        };
        ensure!(
            heap::COUNTED,
            "{experiment} counts bytes: build the laboratory without the feature plain-alloc"
        );
        let structures = self.chosen(all)?;
        let experiment = Experiment {
            name: experiment,
            cells: vec![String::new()],
            subjects: &|_| structures.clone(),
            measure: &|structure: Structure, _, round| {
                let mut report = structure.measure(experiment, &plan, round)?;
                more(structure, &mut report)?;
                Ok(report)
            },
        };
        experiment.run(&self.common)
    }
}
