//! Keys were warmed together: this measures in virtual time how their loads spread.
//!
//! All keys are loaded at once with one TTL, and each again as soon as it is gone. Without jitter
//! all loads of a generation fall into one moment.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tidewheel::{Cache, Driver, ManualClock};

use super::subject::{Hasher, Key, Value};
use crate::report::Figures;

const TTL: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(100);
/// The first generation: all of it ends within one TTL, and the step that follows.
const STEPS: usize = 601;
/// Entries and timer records that one call may touch.
const BUDGET: u32 = u32::MAX;

/// Loads in each step from the first that has any to the last.
#[derive(Debug)]
pub(super) struct Loads(Vec<u64>);

/// Warms `keys` and loads each again when it is gone.
pub(super) fn run(keys: u64, jitter: f64) -> Result<Loads> {
    let clock = ManualClock::new();
    let cache: Cache<u64, [u8; 32], Hasher> = Cache::builder()
        .max_capacity(keys.saturating_mul(2))
        .time_to_live(TTL)
        .jitter(jitter)
        .hasher(Hasher::default())
        .clock(clock.clone())
        .driver(Driver::Manual)
        .build()?;
    let load = |id: u64| cache.insert(u64::of(id), <[u8; 32]>::for_key(id));
    (0..keys).for_each(load);
    let mut loads = Vec::with_capacity(STEPS);
    for _ in 0..STEPS {
        clock.advance(STEP);
        let progress = cache.advance(cache.now(), BUDGET);
        ensure!(!progress.backlog, "more is due than one call may remove");
        let mut loaded = 0;
        // Where nothing has gone, nothing need be looked for.
        let among = if progress.expired > 0 { keys } else { 0 };
        for id in (0..among).filter(|&id| !cache.contains_key(&u64::of(id))) {
            load(id);
            loaded += 1;
        }
        loads.push(loaded);
    }
    let is_load = |loads: &u64| *loads > 0;
    let span = loads
        .iter()
        .position(is_load)
        .zip(loads.iter().rposition(is_load));
    let (first, last) = span.context("nothing was loaded again")?;
    Ok(Loads(loads[first..=last].to_vec()))
}

impl Loads {
    /// The most loads in a step over the mean of all.
    pub(super) fn max_over_mean(&self) -> f64 {
        let mean = self.0.iter().sum::<u64>() as f64 / self.0.len() as f64;
        self.0.iter().fold(0, |most, loads| *loads.max(&most)) as f64 / mean
    }

    pub(super) fn push(&self, figures: &mut Figures) {
        figures.push("warmed_spread_s", self.0.len() as f64 * STEP.as_secs_f64());
        figures.push("warmed_max_over_mean", self.max_over_mean());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_spreads_what_was_warmed_together_and_without_it_all_loads_meet() {
        let keys = 3_000;
        let with = run(keys, 0.2).expect("runs");
        // 20 % of a minute; nothing lives longer than its TTL.
        let steps = with.0.len();
        assert!((110..=121).contains(&steps), "{steps}");
        assert!(with.0.iter().sum::<u64>() >= keys);
        let ratio = with.max_over_mean();
        assert!(ratio < 2.0, "{ratio}");
        let without = run(keys, 0.0).expect("runs");
        assert_eq!(without.0, [keys]);
    }
}
