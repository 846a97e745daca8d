//! One strategy through one course: what it held, sampled, and what its ledger says.

use super::course::{Course, SAMPLE_MS};
use super::strategy::{Ledger, Strategy};

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
    use super::super::segments::Segments;
    use super::super::table::Table;
    use super::*;

    /// What a strategy holds at every sample.
    pub(in crate::studies::ttl_memory) fn held(
        course: &Course,
        strategy: impl Strategy + 'static,
    ) -> (Vec<u64>, Ledger) {
        measure(course, Box::new(strategy))
    }

    #[test]
    fn nothing_holds_less_than_what_is_alive_and_nothing_needs_more() {
        for mix in MIXES {
            let course = Course::of(&mix.requests(1.0, 0.1, 3), 3_600_000);
            assert!(course.hits > 0 && course.hits < course.gets, "{}", mix.name);
            let needed = course.needed.iter().zip(&course.live);
            assert!(needed.clone().all(|(needed, live)| needed <= live));
            assert!(needed.clone().any(|(needed, live)| needed < live));
            let lazy = held(&course, Table::lazy());
            let strategies: [(&str, (Vec<u64>, Ledger)); 4] = [
                ("sampling", held(&course, Table::sampling(1))),
                ("scan", held(&course, Table::scan(60_000))),
                ("segments", held(&course, Segments::new(1 << 16))),
                ("ours", held(&course, Ours::new().expect("builds"))),
            ];
            for (name, (samples, ledger)) in &strategies {
                let mut pairs = samples.iter().zip(&course.live);
                assert!(
                    pairs.all(|(held, live)| held >= live),
                    "{} {name}",
                    mix.name
                );
                assert!(ledger.late_ms.len() as u64 <= course.expired);
                if *name != "segments" {
                    let mut pairs = samples.iter().zip(&lazy.0);
                    assert!(
                        pairs.all(|(held, lazy)| held <= lazy),
                        "{} {name}",
                        mix.name
                    );
                }
            }
            let (ours, ledger) = &strategies[3].1;
            assert_eq!(*ours, course.live, "{}: ours holds what is alive", mix.name);
            assert_eq!(ledger.late_ms.len() as u64, course.expired);
            assert!(ledger.lateness().iter().all(|late_ms| *late_ms <= 1));
        }
    }
}
