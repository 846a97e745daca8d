//! What was written down, against what was promised.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use tidewheel_tasks::Timestamp;

use super::child::LONGEST;

/// What was asked for.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) first: Timestamp,
    /// From one task to the next, in microseconds.
    pub(super) gap: u64,
    /// One in so many was cancelled.
    pub(super) cancelled: u64,
    pub(super) tasks: u64,
    /// When workers were killed, or stopped.
    pub(super) deaths: Vec<Timestamp>,
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ran {
    at: u64,
    fence: u64,
    due: u64,
}

/// All runs by task. A line that a kill cut off is none.
pub(super) fn read(folder: &Path) -> HashMap<u64, Vec<Ran>> {
    let mut runs: HashMap<u64, Vec<Ran>> = HashMap::new();
    for entry in std::fs::read_dir(folder).expect("the folder").flatten() {
        if entry.path().extension().is_some() {
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).expect("a log");
        for line in text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
        {
            let numbers: Vec<u64> = line
                .split_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect();
            let [task, fence, due, at] = numbers[..] else {
                panic!("a line that is none: {line}");
            };
            runs.entry(task).or_default().push(Ran { at, fence, due });
        }
    }
    runs.values_mut().for_each(|runs| runs.sort());
    runs
}

impl Report {
    pub(super) fn check(&self, engine: &str, runs: &HashMap<u64, Vec<Ran>>) {
        let (mut late, mut again, mut lost) = (Vec::new(), 0, Vec::new());
        for task in 0..self.tasks {
            let ran = runs.get(&task).map_or(&[][..], |runs| runs);
            if task % self.cancelled == 0 {
                assert_eq!(ran, [], "{task} was cancelled");
                continue;
            }
            let Some(first) = ran.first() else {
                lost.push(task);
                continue;
            };
            assert!(
                ran.iter().all(|run| run.at >= run.due),
                "{task} ran early: {ran:?}"
            );
            let grows = ran.windows(2).all(|two| two[0].fence < two[1].fence);
            assert!(grows, "{task} ran again without a higher fence: {ran:?}");
            assert_eq!(first.due, self.first.0 + task * self.gap);
            again += ran.len() - 1;
            late.push((first.at - first.due, first.due));
        }
        self.print(engine, late, again);
        assert_eq!(lost, [0; 0], "tasks never ran");
    }

    /// How late first runs were: all of them, and those that no dead worker can have held.
    fn print(&self, engine: &str, late: Vec<(u64, u64)>, again: usize) {
        println!("{engine}: {} tasks ran, {again} ran again", late.len());
        let held = |due: u64| {
            // What it held is claimed again at the end of its lease, all at once.
            let ends = |death: &Timestamp| death.plus(LONGEST + Duration::from_secs(1)).0;
            self.deaths
                .iter()
                .any(|death| (death.0..ends(death)).contains(&due))
        };
        let (dead, alive): (Vec<_>, Vec<_>) = late.iter().partition(|(_, due)| held(*due));
        quantiles(engine, "all", late.iter().map(|(late, _)| *late).collect());
        quantiles(
            engine,
            "workers alive",
            alive.iter().map(|(late, _)| *late).collect(),
        );
        let mut seconds: Vec<u64> = alive
            .iter()
            .filter(|(late, _)| *late > 5000)
            .map(|(_, due)| due / 1_000_000)
            .collect();
        seconds.sort_unstable();
        let seconds = seconds.chunk_by(|a, b| a == b);
        let seconds: Vec<_> = seconds.map(|same| (same[0], same.len())).collect();
        println!("{engine}, workers alive: late by more than 5 ms, by second: {seconds:?}");
        quantiles(
            engine,
            "after a worker's death",
            dead.iter().map(|(late, _)| *late).collect(),
        );
    }
}

fn quantiles(engine: &str, what: &str, mut late_us: Vec<u64>) {
    late_us.sort_unstable();
    let Some(last) = late_us.len().checked_sub(1) else {
        return;
    };
    let at = |part: f64| late_us[(last as f64 * part) as usize] as f64 / 1000.0;
    let (p50, p90, p99, max) = (at(0.5), at(0.9), at(0.99), at(1.0));
    println!(
        "{engine}, {what}: {} tasks, late by ms: p50 {p50}, p90 {p90}, p99 {p99}, max {max}",
        last + 1
    );
}
