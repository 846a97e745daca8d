//! Tasks by key: the courses of `timers` with keys and values, and the scheduler in real time.
//!
//! Keys and values are 64 bits each; keys are spread over all of them, and set, moved and removed
//! by key. After the courses in virtual time, our scheduler runs some in real time, and has one
//! task moved a million times.

use anyhow::Result;
use serde_json::json;
use tidewheel_scheduler::Tasks;

use self::ours::Ours;
use crate::outcome::Outcome;
use crate::report::Report;
use crate::rng::mix;
use crate::timers::plan::{Options, Structure};

mod live;
mod ours;
#[cfg(feature = "peers")]
mod peers;

const STRUCTURES: &[Structure] = &[
    Structure::ours("Tasks", |_| Ok(Box::new(Ours(Tasks::new())))),
    // tokio-util's queue and a map from key to its handle.
    #[cfg(feature = "peers")]
    Structure::ours("DelayQueue+HashMap", |_| Ok(Box::new(peers::Delay::new()?)))
        .in_package("tokio-util"),
    // Keeps keys but no values.
    #[cfg(feature = "peers")]
    Structure::ours("hhwt", |_| Ok(Box::new(peers::Hhwt::new())))
        .in_package("hierarchical_hash_wheel_timer"),
];

/// Bytes of key and value that a structure keeps for each task.
fn payload_bytes(structure: &Structure) -> f64 {
    if structure.name == "hhwt" { 8.0 } else { 16.0 }
}

/// The key of task `id`: all 64 bits are in use.
fn key(id: u32) -> u64 {
    mix(u64::from(id))
}

/// Tasks of the run in real time, and the seconds over which they are spread.
const LIVE: (u32, u32) = (100_000, 10);
const QUICK_LIVE: (u32, u32) = (5_000, 1);
/// The moves of the one task, for each of those: a million in a full run.
const MOVES_PER_TASK: u64 = 10;

pub(crate) fn run(options: &Options) -> Result<Option<Outcome>> {
    let live = if options.common.basics.quick {
        QUICK_LIVE
    } else {
        LIVE
    };
    let more = |structure: Structure, report: &mut Report| tasks_alone(&structure, live, report);
    options.run("tasks", STRUCTURES, &more)
}

/// The figures of tasks beyond those of timers.
fn tasks_alone(structure: &Structure, live: (u32, u32), report: &mut Report) -> Result<()> {
    for (from, to) in [
        ("bytes_per_timer", "bytes_beyond"),
        ("bytes_after_reschedule", "bytes_beyond_moved"),
    ] {
        let bytes = report.figures.value(from);
        let beyond = bytes.map(|bytes| bytes - payload_bytes(structure));
        report.figures.push(to, beyond);
    }
    if structure.is_ours() {
        report.params["live_tasks"] = json!(live.0);
        report.params["live_s"] = json!(live.1);
        live::moves_of_one(u64::from(live.0) * MOVES_PER_TASK, report);
        live::run(live, report)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timers::plan::tests::measure_until;

    #[test]
    fn every_structure_fires_every_task_on_its_tick() {
        for structure in STRUCTURES {
            let beyond = 4.0 + payload_bytes(structure);
            let mut report = measure_until(*structure, "tasks", beyond);
            tasks_alone(structure, (500, 1), &mut report).expect("measures");
            let value = |key: &str| report.figures.value(key);
            assert_eq!(report.notes, Vec::<String>::new(), "{structure}");
            assert_eq!(value("late_max_ticks"), Some(0.0), "{structure}");
            if structure.is_ours() {
                assert_eq!(value("budget_unfired"), Some(0.0));
                assert_eq!(value("live_early"), Some(0.0));
                assert!(value("live_late_p99_us").is_some());
            }
        }
    }
}
