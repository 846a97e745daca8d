//! One run, drawn from bytes: those of a fuzzer, or those of a seed.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tidewheel_resp::Protocol;

use crate::check::against_model;
use crate::dice::Dice;
use crate::draw::Draw;
use crate::loose::{Loose, any_command};
use crate::rig::Rig;
use crate::step::Step;

/// Bytes that a seed stands for: some hundreds of steps.
const BYTES: usize = 4_000;

/// How often a failing run is tried with fewer steps.
const TRIES_MAX: usize = 500;

/// A keyspace and what happens to it.
#[derive(Clone, Debug)]
pub struct Run {
    protocol: Protocol,
    shards: usize,
    steps: Steps,
}

#[derive(Clone, Debug)]
enum Steps {
    /// Commands that the model knows.
    Known(Vec<Step>),
    /// Rows of the table with any arguments.
    Any(Vec<Loose>),
}

impl Run {
    /// Commands that the model knows.
    pub fn known(bytes: &[u8]) -> Self {
        Self::draw(bytes, |draw| Steps::Known(Step::draw_all(draw)))
    }

    /// Rows of the command table with any arguments.
    pub fn any(bytes: &[u8]) -> Self {
        Self::draw(bytes, |draw| Steps::Any(Loose::draw_all(draw)))
    }

    /// One or the other.
    pub fn either(bytes: &[u8]) -> Self {
        match bytes.split_first() {
            Some((first, rest)) if first % 2 == 1 => Self::any(rest),
            _ => Self::known(bytes.get(1..).unwrap_or(&[])),
        }
    }

    fn draw(bytes: &[u8], steps: impl FnOnce(&mut Draw<'_>) -> Steps) -> Self {
        let mut draw = Draw::new(bytes);
        Self {
            protocol: [Protocol::Resp2, Protocol::Resp3][usize::from(draw.below(2))],
            shards: [4, 1, 16][usize::from(draw.below(3))],
            steps: steps(&mut draw),
        }
    }

    /// Runs it, and panics at the first thing that is wrong.
    pub fn check(&self) {
        let rig = Rig::new(self.protocol, self.shards);
        match &self.steps {
            Steps::Known(steps) => against_model(rig, steps),
            Steps::Any(steps) => any_command(rig, steps),
        }
    }

    /// Checks the runs of some seeds. If one fails, it says which steps are enough for that.
    ///
    /// `TIDEWHEEL_ORACLE_SEED=n` checks that seed alone, and `TIDEWHEEL_DEEP=1` eight times as
    /// many. `TIDEWHEEL_ORACLE_BYTES=n` draws longer runs: eight bytes are about a step.
    ///
    /// # Panics
    ///
    /// If a run fails.
    pub fn check_seeds(seeds: Range<u64>, draw: fn(&[u8]) -> Self) {
        let one = std::env::var("TIDEWHEEL_ORACLE_SEED").ok();
        let factor = if std::env::var_os("TIDEWHEEL_DEEP").is_some() {
            8
        } else {
            1
        };
        let seeds = match one {
            Some(seed) => vec![seed.parse().expect("a number")],
            None => (seeds.start..seeds.start + (seeds.end - seeds.start) * factor).collect(),
        };
        let bytes = std::env::var("TIDEWHEEL_ORACLE_BYTES").ok();
        let bytes = bytes.map_or(BYTES, |bytes| bytes.parse().expect("a number"));
        for seed in seeds {
            let run = draw(&Dice::new(seed).fill(bytes));
            if run.fails() {
                let run = run.shortest();
                panic!("TIDEWHEEL_ORACLE_SEED={seed} fails with {run:#?}");
            }
        }
    }

    fn fails(&self) -> bool {
        catch_unwind(AssertUnwindSafe(|| self.check())).is_err()
    }

    /// A failing run with as few steps as can be found in a while.
    fn shortest(mut self) -> Self {
        let (mut piece, mut tries) = (self.len() / 2, 0);
        while piece > 0 {
            let mut at = 0;
            while at < self.len() && tries < TRIES_MAX {
                let mut shorter = self.clone();
                shorter.cut(at..(at + piece).min(self.len()));
                tries += 1;
                if shorter.fails() {
                    self = shorter;
                } else {
                    at += piece;
                }
            }
            piece /= 2;
        }
        self
    }

    fn len(&self) -> usize {
        match &self.steps {
            Steps::Known(steps) => steps.len(),
            Steps::Any(steps) => steps.len(),
        }
    }

    fn cut(&mut self, range: Range<usize>) {
        match &mut self.steps {
            Steps::Known(steps) => drop(steps.drain(range)),
            Steps::Any(steps) => drop(steps.drain(range)),
        }
    }
}
