//! What was written down, against what was promised.

use std::collections::HashMap;
use std::path::Path;

use tidewheel_tasks::Timestamp;

/// What was asked for.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) first: Timestamp,
    /// From one task to the next, in microseconds.
    pub(super) gap: u64,
    /// One in so many was cancelled.
    pub(super) cancelled: u64,
    pub(super) tasks: u64,
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

    /// How late first runs were, and when the late ones were due.
    fn print(&self, engine: &str, mut late: Vec<(u64, u64)>, again: usize) {
        late.sort_unstable();
        let at = |part: f64| late[((late.len() - 1) as f64 * part) as usize].0 as f64 / 1000.0;
        println!(
            "{engine}: {} tasks, {again} of them again; late by ms: p50 {}, p90 {}, p95 {}, p99 {}, p99.9 {}, max {}",
            late.len(),
            at(0.5),
            at(0.9),
            at(0.95),
            at(0.99),
            at(0.999),
            at(1.0),
        );
        let mut seconds: Vec<u64> = late
            .iter()
            .filter(|(late, _)| *late > 5000)
            .map(|(_, due)| due / 1_000_000)
            .collect();
        seconds.sort_unstable();
        println!(
            "{engine}: {} were late by more than 5 ms, due in these seconds:",
            seconds.len()
        );
        for second in seconds.chunk_by(|a, b| a == b) {
            print!(" {}:{}", second[0], second.len());
        }
        println!();
    }
}
