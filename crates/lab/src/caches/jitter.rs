//! Keys that were warmed together: how their loads spread over time, in virtual time.
//!
//! All keys are loaded at once with one TTL, and each again as soon as it is gone. Without jitter all
//! loads of a generation fall into one moment.

use std::time::Duration;

use anyhow::{Result, ensure};
use tidewheel::{Cache, Driver, ManualClock};

use super::subject::{Hasher, Key, Value};
use crate::report::Figures;

const TTL: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(100);
/// Two generations and a half: the third overlaps the second's end.
const STEPS: usize = 1_500;
/// Entries and timer records that one call may touch.
const BUDGET: u32 = u32::MAX;

/// Loads in each step after the warming.
#[derive(Debug)]
pub(super) struct Loads(Vec<u64>);

/// Warms `keys` and loads them again for [`STEPS`] steps.
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
    Ok(Loads(loads))
}

impl Loads {
    /// The loads of the first generation, which all end within one TTL (and the step that follows).
    fn first_generation(&self) -> &[u64] {
        let end = (TTL.as_millis() / STEP.as_millis()) as usize + 1;
        let generation = &self.0[..end.min(self.0.len())];
        let is_load = |&loads: &u64| loads > 0;
        let from = generation.iter().position(is_load).unwrap_or(0);
        let last = generation.iter().rposition(is_load);
        &generation[from..last.map_or(from, |at| at + 1)]
    }

    /// The most loads in a step over the mean of the steps in which the first generation is loaded.
    pub(super) fn max_over_mean(&self) -> Option<f64> {
        let generation = self.first_generation();
        let max = generation.iter().max()?;
        let mean = generation.iter().sum::<u64>() as f64 / generation.len() as f64;
        (mean > 0.0).then(|| *max as f64 / mean)
    }

    pub(super) fn push(&self, figures: &mut Figures) {
        let generation = self.first_generation();
        let spread_s = generation.len() as f64 * STEP.as_secs_f64();
        let most = generation.iter().max().map(|&max| max as f64);
        let (sum, steps) = (self.0.iter().sum::<u64>(), self.0.len());
        let most_of_all = self.0.iter().max().filter(|_| sum > 0);
        let over_long_mean = most_of_all.map(|&max| max as f64 * steps as f64 / sum as f64);
        figures.push("warmed_spread_s", spread_s);
        figures.push("warmed_max_per_100ms", most);
        figures.push("warmed_max_over_mean", self.max_over_mean());
        figures.push("warmed_max_over_long_mean", over_long_mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_spreads_what_was_warmed_together_and_without_it_all_loads_meet() {
        let keys = 3_000;
        let with = run(keys, 0.2).expect("runs");
        let generation = with.first_generation();
        // 20 % of a minute; nothing lives longer than its TTL.
        let steps = generation.len();
        assert!((110..=121).contains(&steps), "{steps}");
        assert!(generation.iter().sum::<u64>() >= keys);
        let ratio = with.max_over_mean().expect("loads");
        assert!(ratio < 2.0, "{ratio}");
        let without = run(keys, 0.0).expect("runs");
        assert_eq!(without.first_generation(), [keys]);
    }
}
