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
use crate::clock;
use crate::heap;
use crate::outcome::Outcome;
use crate::proc::NoiseMeter;
use crate::progress::Progress;
use crate::report::Report;
use crate::rng::mix;
use crate::timers::Plan;
use crate::timers::course::Course;
use crate::timers::subject::Subject;
use crate::versions;

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
        let package = match self {
            Self::Tasks => None,
            #[cfg(feature = "peers")]
            Self::DelayQueue => Some("tokio-util"),
            #[cfg(feature = "peers")]
            Self::Hhwt => Some("hierarchical_hash_wheel_timer"),
        };
        package
            .and_then(versions::of)
            .unwrap_or(env!("CARGO_PKG_VERSION"))
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

/// Tasks are counted in 32 bits, and the peers count theirs so too.
const MAX_TASKS: u32 = 1 << 30;
const MAX_DELAY_MS: u32 = 1 << 24;

/// Options of `tasks`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Tasks (default 1000000).
    #[arg(long)]
    tasks: Option<u32>,
    /// Structures (default all).
    #[arg(long, value_enum, value_delimiter = ',')]
    structures: Option<Vec<Structure>>,
    /// The shortest delay, in ticks of a millisecond (default 30000).
    #[arg(long)]
    from_ms: Option<u32>,
    /// The longest; delays are below it (default 60000).
    #[arg(long)]
    to_ms: Option<u32>,
    /// Timer records that one tick may touch in the budgeted course.
    #[arg(long, default_value_t = 2_048)]
    budget: u32,
    /// Runs per structure (default 3).
    #[arg(long)]
    runs: Option<usize>,
    /// Tasks of the run in real time, 0 for none (default 100000).
    #[arg(long)]
    live_tasks: Option<u32>,
    /// Seconds over which they are spread (default 10).
    #[arg(long)]
    live_s: Option<u32>,
    /// Seed of delays and orders.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A small run of a few seconds.
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(args: &Args, progress: &mut Progress) -> Result<Outcome> {
    let pick =
        |asked: Option<u32>, full, small| asked.unwrap_or(if args.quick { small } else { full });
    let plan = Plan {
        timers: pick(args.tasks, 1_000_000, 20_000),
        from_ms: pick(args.from_ms, 30_000, 3_000),
        to_ms: pick(args.to_ms, 60_000, 6_000),
        budget: args.budget,
        seed: args.seed,
    };
    let live = live::Plan {
        tasks: pick(args.live_tasks, 100_000, 5_000),
        seconds: pick(args.live_s, 10, 1),
    };
    let runs = args.runs.unwrap_or(if args.quick { 1 } else { 3 });
    if plan.timers == 0 || plan.timers > MAX_TASKS || runs == 0 || plan.budget == 0 {
        bail!("--tasks lies in 1..={MAX_TASKS}, --runs and --budget start at 1");
    }
    if plan.from_ms == 0 || plan.from_ms >= plan.to_ms || plan.to_ms > MAX_DELAY_MS {
        bail!("--from-ms starts at 1 and lies below --to-ms, which is {MAX_DELAY_MS} at most");
    }
    if live.seconds == 0 || live.seconds > 3_600 {
        bail!("--live-s lies in 1..=3600");
    }
    if !heap::COUNTED {
        bail!("tasks counts bytes: build the laboratory without the feature plain-alloc");
    }
    let structures = args
        .structures
        .clone()
        .unwrap_or_else(|| Structure::value_variants().to_vec());
    let mut reports = Vec::new();
    for round in 1..=runs {
        for &structure in &structures {
            progress.set_title(format!("{structure} {round}/{runs}"));
            let mut report = measure(structure, &plan, live, round as u64, progress)?;
            report.run = round;
            reports.push(report);
        }
    }
    progress.clear();
    Ok(Outcome::of("tasks", reports))
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
    let mut noise = NoiseMeter::start(Some(0));
    let start_ns = clock::mono_ns();
    progress.phase("set, move, fire", 4);
    course.fire(|| structure.build(), &mut report)?;
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
    course.cancel(structure.build()?, &mut report);
    if is_ours {
        progress.phase("fire on a budget", 4);
        progress.set(2);
        course.fire_on_budget(structure.build()?, &mut report);
        progress.phase("real time", 4);
        progress.set(3);
        live::moves_of_one(&mut report);
        if live.tasks > 0 {
            live::run(live, &mut report)?;
        }
    }
    let wall_ns = clock::mono_ns() - start_ns;
    report.figures.push_noise(noise.others_ns(Some(0)), wall_ns);
    Ok(report.finish())
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
