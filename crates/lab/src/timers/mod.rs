//! Measures the timer structures themselves on a virtual clock: time, bytes and lateness per timer.
//!
//! Deadlines lie uniformly between 30 and 60 s ahead, at one tick a millisecond. Three courses,
//! each with a structure of its own:
//!
//! 1. insert all in id order, reschedule all in random order to new deadlines, advance tick by tick
//!    until all have fired;
//! 2. insert all, cancel all in random order, advance through the same minute;
//! 3. as the first, with a budget of records per tick: what is left over fires later, and how much
//!    later is the figure.

use anyhow::Result;
use tidewheel_timer::{HashedWheel, HierarchicalWheel, IndexedHeap};

pub(crate) use self::plan::Options;
use self::plan::Structure;
use self::subject::Ours;
use crate::outcome::Outcome;

pub(crate) mod course;
#[cfg(feature = "peers")]
pub(crate) mod peers;
pub(crate) mod plan;
pub(crate) mod subject;

/// The first time of the virtual clock: the beginning of a server's engine time.
const START: u64 = 1 << 40;
const HASHED_SLOTS: usize = 1 << 16;

const STRUCTURES: &[Structure] = &[
    // The production timer.
    Structure::ours("HierarchicalWheel", |timers| {
        Ok(Ours::boxed(HierarchicalWheel::new(START), START, timers))
    }),
    Structure::ours("HashedWheel", |timers| {
        let wheel = HashedWheel::new(HASHED_SLOTS, START);
        Ok(Ours::boxed(wheel, START, timers))
    }),
    Structure::ours("IndexedHeap<2>", |timers| {
        Ok(Ours::boxed(IndexedHeap::<2>::new(START), START, timers))
    }),
    Structure::ours("IndexedHeap<4>", |timers| {
        Ok(Ours::boxed(IndexedHeap::<4>::new(START), START, timers))
    }),
    #[cfg(feature = "peers")]
    Structure::ours("DelayQueue", |timers| {
        Ok(Box::new(peers::Delay::new(timers)?))
    })
    .in_package("tokio-util"),
    #[cfg(feature = "peers")]
    Structure::ours("hhwt", |_| Ok(Box::new(peers::Hhwt::<u32>::new())))
        .in_package("hierarchical_hash_wheel_timer"),
];

/// Runs all structures, or those that are asked for.
pub(crate) fn run(options: &Options) -> Result<Option<Outcome>> {
    options.run("timers", STRUCTURES, &|_, _| Ok(()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::course::{Course, Plan};
    use super::plan::tests::{SMALL, measure_until};
    use super::*;
    use crate::report::Report;

    #[test]
    fn every_structure_fires_everything_on_its_tick() {
        for structure in STRUCTURES {
            let report = measure_until(*structure, "timers", 4.0);
            let value = |key: &str| report.figures.value(key);
            assert_eq!(report.notes, Vec::<String>::new(), "{structure}");
            assert_eq!(value("late_max_ticks"), Some(0.0), "{structure}");
            assert!(value("insert_ns").is_some_and(|ns| ns > 0.0), "{structure}");
            if structure.is_ours() {
                assert_eq!(value("budget_unfired"), Some(0.0), "{structure}");
            }
        }
    }

    #[test]
    fn a_budget_too_small_for_the_rate_is_seen_as_lateness() {
        // 5,000 timers in 100 ticks are 50 a tick; 20 records a tick cannot keep up.
        let plan = Plan {
            from_ms: 100,
            to_ms: 200,
            budget: 20,
            ..SMALL
        };
        let mut report = Report::new("timers", json!({}));
        let heap = (STRUCTURES[3].what)(5_000).expect("builds");
        Course::new(&plan, 2).fire_on_budget(heap, &mut report);
        let value = |key: &str| report.figures.value(key).expect(key);
        assert!((100.0..200.0).contains(&value("budget_late_max_ticks")));
        assert!(value("budget_backlog_max") > 2_000.0);
    }
}
