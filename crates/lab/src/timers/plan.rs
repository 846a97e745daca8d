//! `timers` and `tasks` share these options, the table of structures, and the courses of one
//! measurement.

use anyhow::{Result, ensure};
use serde_json::json;

use super::course::{Course, Plan};
use super::subject::Subject;
use crate::heap;
use crate::names::Choice;
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
    pub(crate) common: Common,
    /// Number of timers (quick: 20000).
    #[arg(long = "timers", visible_alias = "tasks", value_name = "N", value_parser = count::<u32>)]
    #[arg(
        default_value_t = 1_000_000,
        default_value_if("quick", "true", "20000")
    )]
    timers: u32,
}

/// Builds an empty structure with room for so many.
pub(crate) type Build = fn(usize) -> Result<Box<dyn Subject>>;

/// A structure to measure. Ours alone can be told how much a call may do.
pub(crate) type Structure = Choice<Build>;

/// Puts a structure through all courses.
pub(crate) fn measure(
    structure: Structure,
    experiment: &str,
    plan: &Plan,
    round: usize,
) -> Result<Report> {
    let params = json!({
        experiment: plan.timers,
        "from_ms": plan.from_ms,
        "to_ms": plan.to_ms,
        "budget": structure.is_ours().then_some(plan.budget),
        "seed": plan.seed,
    });
    let mut report = Report::new(experiment, params).of(structure, structure.version());
    let course = Course::new(plan, plan.seed.wrapping_add(round as u64));
    let build = || (structure.what)(plan.timers as usize);
    course.fire(build, &mut report)?;
    course.cancel(build()?, &mut report);
    if structure.is_ours() {
        course.fire_on_budget(build()?, &mut report);
    }
    Ok(report)
}

impl Options {
    /// Structures through all courses; `more` measures what an experiment adds.
    pub(crate) fn run(
        &self,
        experiment: &'static str,
        all: &[Structure],
        more: &dyn Fn(Structure, &mut Report) -> Result<()>,
    ) -> Result<Option<Outcome>> {
        let (from_ms, to_ms) = if self.common.basics.quick {
            QUICK_MS
        } else {
            DELAY_MS
        };
        let plan = Plan {
            timers: self.timers,
            from_ms,
            to_ms,
            budget: BUDGET,
            seed: self.common.basics.seed,
        };
        ensure!(
            heap::COUNTED,
            "{experiment} counts bytes: build the laboratory without the feature plain-alloc"
        );
        let experiment = Experiment {
            name: experiment,
            cells: vec![String::new()],
            subjects: &|_| all.to_vec(),
            measure: &|structure: Structure, _, round| {
                let mut report = measure(structure, experiment, &plan, round)?;
                more(structure, &mut report)?;
                Ok(report)
            },
        };
        experiment.run(&self.common)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run of a moment.
    pub(crate) const SMALL: Plan = Plan {
        timers: 5_000,
        from_ms: 50,
        to_ms: 700,
        budget: 64,
        seed: 9,
    };

    /// A report that says more than so many bytes. They are the process's, and other tests allocate
    /// and free meanwhile.
    pub(crate) fn measure_until(structure: Structure, experiment: &str, bytes: f64) -> Report {
        let report = |round| measure(structure, experiment, &SMALL, round).expect("measures");
        let found = |report: &Report| report.figures.value("bytes_per_timer") > Some(bytes);
        (1..10).map(report).find(found).expect("it takes memory")
    }
}
