//! What a strategy of giving dead objects' memory back must answer, and what is counted of it.

use super::course::{Course, SAMPLE_MS};
use crate::hit_ratios::bounds::Event;

/// A way to hold objects that have times to live, in a cache without a limit.
pub(super) trait Strategy {
    /// What it does of its own accord, up to and including now.
    fn run_to(&mut self, now_ms: u64);
    /// What a client does; the strategy has run to its time.
    fn apply(&mut self, event: &Event);
    /// Bytes of keys and values that it holds, dead or alive.
    fn held_bytes(&self) -> u64;
    /// What it has counted.
    fn ledger(self: Box<Self>) -> Ledger;
}

/// The work of a strategy, and how late it was done.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// For each object that was dead when its memory came back: its deadline, and how long that was past.
    pub(super) late_ms: Vec<(u64, u64)>,
    /// Keys looked at beyond those that clients asked for.
    pub(super) looked: u64,
}

impl Ledger {
    /// An object's memory came back now.
    pub(super) fn freed(&mut self, deadline_ms: u64, now_ms: u64) {
        if let Some(late_ms) = now_ms.checked_sub(deadline_ms) {
            self.late_ms.push((deadline_ms, late_ms));
        }
    }

    /// How late, in the order in which memory came back.
    #[cfg(test)]
    pub(super) fn lateness(&self) -> Vec<u64> {
        self.late_ms.iter().map(|(_, late_ms)| *late_ms).collect()
    }
}

/// Bytes held at every sample of the course, and the ledger at its end.
pub(super) fn measure(course: &Course, mut strategy: Box<dyn Strategy>) -> (Vec<u64>, Ledger) {
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
    (samples, strategy.ledger())
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::mix::MIXES;
    use super::super::ours::Ours;
    use super::super::table::Table;
    use super::*;

    type Held = (Vec<u64>, Ledger);

    /// What a strategy holds at every sample.
    pub(in super::super) fn held(course: &Course, strategy: impl Strategy + 'static) -> Held {
        measure(course, Box::new(strategy))
    }

    #[test]
    fn nothing_holds_less_than_what_is_alive_and_nothing_needs_more() {
        for mix in MIXES.iter() {
            let course = Course::of(&mix.requests(1.0, 0.1, 3), 3_600_000);
            assert!(course.hits > 0 && course.hits < course.gets, "{}", mix.name);
            let needed = course.needed.iter().zip(&course.live);
            assert!(needed.clone().all(|(needed, live)| needed <= live));
            assert!(needed.clone().any(|(needed, live)| needed < live));
            let lazy = held(&course, Table::lazy());
            let strategies: [(&str, Held); 3] = [
                ("sampling", held(&course, Table::sampling(1))),
                ("scan", held(&course, Table::scan(60_000))),
                ("ours", held(&course, Ours::new(None).expect("builds"))),
            ];
            for (name, (samples, ledger)) in &strategies {
                let of = format!("{} {name}", mix.name);
                let mut pairs = samples.iter().zip(&course.live);
                assert!(pairs.all(|(held, live)| held >= live), "{of}");
                assert!(ledger.late_ms.len() as u64 <= course.expired);
                let mut pairs = samples.iter().zip(&lazy.0);
                assert!(pairs.all(|(held, lazy)| held <= lazy), "{of}");
            }
            let (ours, ledger) = &strategies[2].1;
            assert_eq!(*ours, course.live, "{}: ours holds what is alive", mix.name);
            assert_eq!(ledger.late_ms.len() as u64, course.expired);
            assert!(ledger.lateness().iter().all(|late_ms| *late_ms <= 1));
        }
    }
}
