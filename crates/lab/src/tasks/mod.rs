//! Tasks by key: the courses of `timers` with keys and values, and the scheduler in real time.
//!
//! Keys and values are 64 bits each; keys are spread over all of them, and set, moved and removed by key.
//! After the courses in virtual time, our scheduler runs `--live-tasks` over `--live-s` seconds of real
//! time, and has one task moved a million times.

use std::fmt;

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde_json::json;

use self::ours::Ours;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::report::Report;
use crate::rng::mix;
use crate::timers::course::Course;
use crate::timers::plan::{self, Options, Plan};
use crate::timers::subject::Subject;

mod live;
mod ours;
#[cfg(feature = "peers")]
mod peers;

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Structure {
    /// `tidewheel_scheduler::Tasks`.
    Tasks,
    /// tokio-util's `DelayQueue` and a `HashMap` from key to its handle.
    #[cfg(feature = "peers")]
    DelayQueue,
    /// The `hierarchical_hash_wheel_timer` crate's cancellable wheel, which keeps keys but no values.
    #[cfg(feature = "peers")]
    Hhwt,
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tasks => "Tasks",
            #[cfg(feature = "peers")]
            Self::DelayQueue => "DelayQueue+HashMap",
            #[cfg(feature = "peers")]
            Self::Hhwt => "hhwt",
        })
    }
}

impl Structure {
    /// The version that this program was built with.
    fn version(self) -> &'static str {
        plan::version(match self {
            Self::Tasks => None,
            #[cfg(feature = "peers")]
            Self::DelayQueue => Some("tokio-util"),
            #[cfg(feature = "peers")]
            Self::Hhwt => Some("hierarchical_hash_wheel_timer"),
        })
    }

    fn build(self) -> Result<Box<dyn Subject>> {
        Ok(match self {
            Self::Tasks => Box::new(Ours::new()),
            #[cfg(feature = "peers")]
            Self::DelayQueue => Box::new(peers::Delay::new()?),
            #[cfg(feature = "peers")]
            Self::Hhwt => Box::new(peers::Hhwt::new()),
        })
    }

    /// Bytes of key and value that it keeps for each task.
    fn payload_bytes(self) -> usize {
        match self {
            Self::Tasks => 16,
            #[cfg(feature = "peers")]
            Self::DelayQueue => 16,
            #[cfg(feature = "peers")]
            Self::Hhwt => 8,
        }
    }
}

/// The key of task `id`: all 64 bits are in use.
fn key(id: u32) -> u64 {
    mix(u64::from(id))
}

/// Options of `tasks`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Tasks (default 1000000, quick 20000).
    #[arg(long)]
    tasks: Option<u32>,
    /// Structures (default all).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STRUCTURE,…")]
    structures: Option<Vec<Structure>>,
    /// Tasks of the run in real time, 0 for none (default 100000, quick 5000).
    #[arg(long)]
    live_tasks: Option<u32>,
    /// Seconds over which they are spread (default 10, quick 1).
    #[arg(long)]
    live_s: Option<u32>,
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(args: &Args, progress: &mut Progress) -> Result<Outcome> {
    let options = &args.options;
    let plan = options.plan("tasks", args.tasks)?;
    let live = live::Plan {
        tasks: options.pick(args.live_tasks, 100_000, 5_000),
        seconds: options.pick(args.live_s, 10, 1),
    };
    if live.seconds == 0 || live.seconds > 3_600 {
        bail!("--live-s lies in 1..=3600");
    }
    let structures = args.structures.as_deref();
    options.rounds(
        "tasks",
        structures,
        progress,
        |structure, round, progress| measure(structure, &plan, live, round, progress),
    )
}

fn measure(
    structure: Structure,
    plan: &Plan,
    live: live::Plan,
    round: u64,
    progress: &Progress,
) -> Result<Report> {
    let is_ours = structure == Structure::Tasks;
    let params = json!({
        "tasks": plan.timers,
        "from_ms": plan.from_ms,
        "to_ms": plan.to_ms,
        "budget": is_ours.then_some(plan.budget),
        "live_tasks": is_ours.then_some(live.tasks),
        "live_s": is_ours.then_some(live.seconds),
        "seed": plan.seed,
    });
    let mut report = Report::new("tasks", None, params);
    report.subject = structure.to_string();
    report.version = structure.version().to_owned();
    let course = Course::new(plan, plan.seed.wrapping_add(round));
    plan::noted(report, |report| {
        progress.phase("set, move, fire", 4);
        course.fire(|| structure.build(), report)?;
        let payload = structure.payload_bytes() as f64;
        for (from, to, label) in [
            (
                "bytes_per_timer",
                "bytes_beyond",
                "bytes/task beyond key and value",
            ),
            (
                "bytes_after_reschedule",
                "bytes_beyond_moved",
                "same after moves",
            ),
        ] {
            let beyond = report.figures.value(from).map(|bytes| bytes - payload);
            report.figures.push(to, label, beyond);
        }
        progress.phase("set, remove, drain", 4);
        progress.set(1);
        course.cancel(structure.build()?, report);
        if is_ours {
            progress.phase("fire on a budget", 4);
            progress.set(2);
            course.fire_on_budget(structure.build()?, report);
            progress.phase("real time", 4);
            progress.set(3);
            live::moves_of_one(report);
            if live.tasks > 0 {
                live::run(live, report)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_structure_fires_every_task_on_its_tick() {
        let plan = Plan {
            timers: 5_000,
            from_ms: 50,
            to_ms: 700,
            budget: 64,
            seed: 9,
        };
        let live = live::Plan {
            tasks: 500,
            seconds: 1,
        };
        for &structure in Structure::value_variants() {
            let progress = Progress::new();
            let report = measure(structure, &plan, live, 1, &progress).expect("sound");
            let value = |key: &str| report.figures.value(key);
            assert_eq!(report.notes, Vec::<String>::new(), "{structure}");
            assert_eq!(value("late_max_ticks"), Some(0.0), "{structure}");
            assert!(value("bytes_beyond").is_some_and(|bytes| bytes > 4.0));
            if structure == Structure::Tasks {
                assert_eq!(value("budget_unfired"), Some(0.0));
                assert_eq!(value("live_early"), Some(0.0));
                assert!(value("live_late_p99_us").is_some());
            }
        }
    }
}
