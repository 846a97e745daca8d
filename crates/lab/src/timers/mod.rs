//! The timer structures themselves on a virtual clock: time, bytes and lateness per timer.
//!
//! Deadlines lie uniformly between 30 and 60 s ahead, at one tick a millisecond. Three courses, each
//! with a structure of its own:
//!
//! 1. insert all in id order, reschedule all in random order to new deadlines, advance tick by tick
//!    until all have fired;
//! 2. insert all, cancel all in random order, advance through the same minute;
//! 3. as the first, with a budget of records per tick: what is left over fires later, and how much
//!    later is the figure.

use std::fmt;

use anyhow::Result;
use clap::ValueEnum;
use serde_json::json;
use tidewheel_timer::{HashedWheel, HierarchicalWheel, IndexedHeap};

use self::course::Course;
use self::plan::{Options, Plan};
use self::subject::{Ours, Subject};
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::report::Report;

pub(crate) mod course;
#[cfg(feature = "peers")]
pub(crate) mod peers;
pub(crate) mod plan;
pub(crate) mod subject;

/// A structure to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Structure {
    /// `HierarchicalWheel`, the production timer.
    Wheel,
    /// `HashedWheel` of 65,536 slots.
    Hashed,
    /// `IndexedHeap<2>`.
    Heap2,
    /// `IndexedHeap<4>`.
    Heap4,
    /// tokio-util's `DelayQueue`.
    #[cfg(feature = "peers")]
    DelayQueue,
    /// The `hierarchical_hash_wheel_timer` crate's cancellable wheel.
    #[cfg(feature = "peers")]
    Hhwt,
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wheel => "HierarchicalWheel",
            Self::Hashed => "HashedWheel",
            Self::Heap2 => "IndexedHeap<2>",
            Self::Heap4 => "IndexedHeap<4>",
            #[cfg(feature = "peers")]
            Self::DelayQueue => "DelayQueue",
            #[cfg(feature = "peers")]
            Self::Hhwt => "hhwt",
        })
    }
}

/// Where the virtual clock stands at first: where a server's engine time begins.
const START: u64 = 1 << 40;
const HASHED_SLOTS: usize = 1 << 16;

impl Structure {
    /// The version that this program was built with.
    fn version(self) -> &'static str {
        plan::version(match self {
            Self::Wheel | Self::Hashed | Self::Heap2 | Self::Heap4 => None,
            #[cfg(feature = "peers")]
            Self::DelayQueue => Some("tokio-util"),
            #[cfg(feature = "peers")]
            Self::Hhwt => Some("hierarchical_hash_wheel_timer"),
        })
    }

    fn build(self, timers: usize) -> Result<Box<dyn Subject>> {
        Ok(match self {
            Self::Wheel => Box::new(Ours::new(HierarchicalWheel::new(START), START, timers)),
            Self::Hashed => Box::new(Ours::new(
                HashedWheel::new(HASHED_SLOTS, START),
                START,
                timers,
            )),
            Self::Heap2 => Box::new(Ours::new(IndexedHeap::<2>::new(START), START, timers)),
            Self::Heap4 => Box::new(Ours::new(IndexedHeap::<4>::new(START), START, timers)),
            #[cfg(feature = "peers")]
            Self::DelayQueue => Box::new(peers::Delay::new(timers)?),
            #[cfg(feature = "peers")]
            Self::Hhwt => Box::new(peers::Hhwt::<u32>::new()),
        })
    }

    /// Whether `advance` can be told how much it may do.
    fn takes_budget(self) -> bool {
        matches!(self, Self::Wheel | Self::Hashed | Self::Heap2 | Self::Heap4)
    }
}

/// Options of `timers`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Timers (default 1000000, quick 20000).
    #[arg(long)]
    timers: Option<u32>,
    /// Structures (default all).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STRUCTURE,…")]
    structures: Option<Vec<Structure>>,
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(args: &Args, progress: &mut Progress) -> Result<Outcome> {
    let plan = args.options.plan("timers", args.timers)?;
    let structures = args.structures.as_deref();
    args.options.rounds(
        "timers",
        structures,
        progress,
        |structure, round, progress| measure(structure, &plan, round, progress),
    )
}

fn measure(structure: Structure, plan: &Plan, round: u64, progress: &Progress) -> Result<Report> {
    let params = json!({
        "timers": plan.timers,
        "from_ms": plan.from_ms,
        "to_ms": plan.to_ms,
        "budget": structure.takes_budget().then_some(plan.budget),
        "seed": plan.seed,
    });
    let mut report = Report::new("timers", None, params);
    report.subject = structure.to_string();
    report.version = structure.version().to_owned();
    let course = Course::new(plan, plan.seed.wrapping_add(round));
    plan::noted(report, |report| {
        progress.phase("insert, reschedule, fire", 3);
        course.fire(|| structure.build(plan.timers as usize), report)?;
        progress.phase("insert, cancel, drain", 3);
        progress.set(1);
        course.cancel(structure.build(plan.timers as usize)?, report);
        if structure.takes_budget() {
            progress.phase("fire on a budget", 3);
            progress.set(2);
            course.fire_on_budget(structure.build(plan.timers as usize)?, report);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_structure_fires_everything_on_its_tick() {
        let plan = Plan {
            timers: 5_000,
            from_ms: 50,
            to_ms: 700,
            budget: 64,
            seed: 9,
        };
        for &structure in Structure::value_variants() {
            let report = measure(structure, &plan, 1, &Progress::new()).expect("the plan is sound");
            let value = |key: &str| report.figures.value(key);
            assert_eq!(report.notes, Vec::<String>::new(), "{structure}");
            assert_eq!(value("late_max_ticks"), Some(0.0), "{structure}");
            assert!(
                value("bytes_per_timer").is_some_and(|bytes| bytes > 4.0),
                "{structure}"
            );
            assert!(value("insert_ns").is_some_and(|ns| ns > 0.0), "{structure}");
            if structure.takes_budget() {
                assert!(value("budget_late_max_ticks").is_some(), "{structure}");
                assert_eq!(value("budget_unfired"), Some(0.0), "{structure}");
            }
        }
    }

    #[test]
    fn a_budget_too_small_for_the_rate_is_seen_as_lateness() {
        // 5,000 timers in 100 ticks are 50 a tick; 20 records a tick cannot keep up.
        let plan = Plan {
            timers: 5_000,
            from_ms: 100,
            to_ms: 200,
            budget: 20,
            seed: 2,
        };
        let report = measure(Structure::Heap4, &plan, 1, &Progress::new()).expect("sound");
        let late = report
            .figures
            .value("budget_late_max_ticks")
            .expect("fired");
        assert!((100.0..200.0).contains(&late), "{late}");
        assert!(report.figures.value("budget_backlog_max").expect("fired") > 2_000.0);
    }
}
