//! The interface of a strategy that gives dead objects' memory back.

use super::course::{Course, SAMPLE_MS};
use crate::hit_ratios::bounds::Event;

/// A way to hold objects that have times to live, in a cache without a limit.
pub(super) trait Strategy {
    /// Does its own work, up to and including now.
    fn run_to(&mut self, now_ms: u64);
    /// Applies a client's event; the strategy has run to its time.
    fn apply(&mut self, event: &Event);
    /// Bytes of keys and values that it holds, dead or alive.
    fn held_bytes(&self) -> u64;
}

/// Bytes held at every sample of the course.
pub(super) fn held(course: &Course, strategy: &mut dyn Strategy) -> Vec<u64> {
    let mut events = course.events.iter().peekable();
    let mut samples = Vec::with_capacity(course.live.len());
    for at_ms in (0..course.live.len() as u64).map(|sample| sample * SAMPLE_MS) {
        while let Some(event) = events.next_if(|event| event.at_ms <= at_ms) {
            strategy.run_to(event.at_ms);
            strategy.apply(event);
        }
        strategy.run_to(at_ms);
        samples.push(strategy.held_bytes());
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::super::mix::MIXES;
    use super::super::ours::Ours;
    use super::super::table::Table;
    use super::*;

    #[test]
    fn nothing_holds_less_than_what_is_alive_and_ours_holds_just_that() {
        for mix in MIXES.iter() {
            let course = Course::of(&mix.requests(0.5, 0.1, 3), 1_800_000);
            assert!(course.hits > 0 && course.hits < course.gets, "{}", mix.name);
            let lazy = held(&course, &mut Table::lazy());
            for search in [Table::sampling(1), Table::scan(60_000)].iter_mut() {
                let samples = held(&course, search);
                let mut pairs = samples.iter().zip(&course.live);
                assert!(pairs.all(|(held, live)| held >= live), "{}", mix.name);
                let mut pairs = samples.iter().zip(&lazy);
                assert!(pairs.all(|(held, lazy)| held <= lazy), "{}", mix.name);
            }
            let ours = held(&course, &mut Ours::new(None).expect("builds"));
            assert_eq!(ours, course.live, "{}", mix.name);
        }
    }
}
