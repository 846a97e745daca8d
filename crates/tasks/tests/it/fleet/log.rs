//! Workers log their claims and runs, by task.

use std::collections::HashMap;
use std::path::Path;

/// A claim of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taken {
    /// The time at which it came.
    pub(super) at: u64,
    pub(super) fence: u64,
    /// The number of this delivery, from 1, if the engine counts them.
    pub(super) delivery: u64,
    /// The worker's log.
    pub(super) log: String,
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ran {
    pub(super) at: u64,
    pub(super) fence: u64,
    pub(super) due: u64,
}

/// The known facts of a task, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Life {
    pub(super) claims: Vec<Taken>,
    pub(super) runs: Vec<Ran>,
}

/// All tasks. A line that a kill cut off is none.
pub(super) fn read(folder: &Path) -> HashMap<u64, Life> {
    let mut lives = HashMap::new();
    for entry in std::fs::read_dir(folder).expect("the folder").flatten() {
        if entry.path().extension().is_some() {
            continue;
        }
        let log = entry.file_name().into_string().expect("a name");
        let text = std::fs::read_to_string(entry.path()).expect("a log");
        for line in text.split_inclusive('\n') {
            if line.ends_with('\n') {
                add(&mut lives, line, &log);
            }
        }
    }
    for life in lives.values_mut() {
        life.claims.sort_by_key(|claim| claim.at);
        life.runs.sort_unstable();
    }
    lives
}

fn add(lives: &mut HashMap<u64, Life>, line: &str, log: &str) {
    let (kind, rest) = line.split_once(' ').expect("a line");
    let numbers = rest.split_whitespace().map(|word| word.parse::<u64>());
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().expect("numbers");
    let [task, fence, third, fourth] = numbers[..] else {
        panic!("a line that is none: {line}");
    };
    let life = lives.entry(task).or_default();
    if kind == "run" {
        let (due, at) = (third, fourth);
        life.runs.push(Ran { at, fence, due });
    } else {
        let (at, delivery, log) = (third, fourth, log.to_owned());
        life.claims.push(Taken {
            at,
            fence,
            delivery,
            log,
        });
    }
}
