//! A table of objects that are removed one by one: on touch alone, by samples, or by a scan.

use std::collections::HashMap;

use super::course::{Event, Object, What};
use super::request::FOREVER;
use super::strategy::{Ledger, Strategy};
use crate::hit_ratios::replay::Hasher;
use crate::rng::Rng;

/// Redis's defaults: ten cycles a second look at 20 keys that have a time to live, and again while more
/// than a tenth of those were dead (`activeExpireCycle` in `src/expire.c`).
const CYCLE_MS: u64 = 100;
const KEYS_PER_SAMPLE: usize = 20;
const DEAD_SHARE: usize = 10;

/// Who looks for the dead that nobody asks for.
#[derive(Debug)]
enum Search {
    /// Nobody.
    None,
    /// Samples at random, as Redis's documentation tells; its newer versions walk the table in hash order,
    /// which is as random and never the same key twice in a round. The limit of its processor time is left out.
    Sampling(Rng),
    /// Everything, once in so many milliseconds.
    Scan(u64),
}

/// Objects by key. What a client finds dead is removed at once, whoever else searches.
#[derive(Debug)]
pub(super) struct Table {
    /// Each with its place among `mortal`; none for what lives forever.
    objects: HashMap<u64, (Object, Option<usize>), Hasher>,
    mortal: Vec<u64>,
    bytes: u64,
    search: Search,
    /// When the search is next.
    next_ms: u64,
    ledger: Ledger,
}

impl Table {
    /// Removed only when touched.
    pub(super) fn lazy() -> Self {
        Self::new(Search::None, u64::MAX)
    }

    /// As Redis does it.
    pub(super) fn sampling(seed: u64) -> Self {
        Self::new(Search::Sampling(Rng::new(seed)), CYCLE_MS)
    }

    /// A walk over everything every so often, as memcached's crawler.
    pub(super) fn scan(every_ms: u64) -> Self {
        Self::new(Search::Scan(every_ms), every_ms)
    }

    fn new(search: Search, next_ms: u64) -> Self {
        Self {
            objects: HashMap::default(),
            mortal: Vec::new(),
            bytes: 0,
            search,
            next_ms,
            ledger: Ledger::default(),
        }
    }

    fn store(&mut self, key: u64, object: Object, now_ms: u64) {
        self.remove(key, now_ms);
        let place = (object.deadline_ms != FOREVER).then_some(self.mortal.len());
        self.mortal.extend(place.map(|_| key));
        self.objects.insert(key, (object, place));
        self.bytes += u64::from(object.bytes);
    }

    fn remove(&mut self, key: u64, now_ms: u64) {
        let Some((object, place)) = self.objects.remove(&key) else {
            return;
        };
        if let Some(place) = place {
            self.mortal.swap_remove(place);
            let moved = self.mortal.get(place);
            if let Some((_, its)) = moved.and_then(|key| self.objects.get_mut(key)) {
                *its = Some(place);
            }
        }
        self.bytes -= u64::from(object.bytes);
        self.ledger.freed(object.deadline_ms, now_ms);
    }

    /// Looks at one key and removes it if it is dead; tells whether it was.
    fn look(&mut self, key: u64, now_ms: u64) -> bool {
        self.ledger.looked += 1;
        let dead = self
            .objects
            .get(&key)
            .is_some_and(|(object, _)| object.is_dead(now_ms));
        if dead {
            self.remove(key, now_ms);
        }
        dead
    }

    fn sample(&mut self, now_ms: u64) {
        loop {
            let count = KEYS_PER_SAMPLE.min(self.mortal.len());
            let mut dead = 0;
            for _ in 0..count {
                let Search::Sampling(rng) = &mut self.search else {
                    return;
                };
                let place = rng.below(self.mortal.len() as u64) as usize;
                if let Some(&key) = self.mortal.get(place) {
                    dead += usize::from(self.look(key, now_ms));
                }
            }
            if dead * DEAD_SHARE <= count {
                return;
            }
        }
    }
}

impl Strategy for Table {
    fn run_to(&mut self, now_ms: u64) {
        while self.next_ms <= now_ms {
            let at_ms = self.next_ms;
            match self.search {
                Search::None => return,
                Search::Sampling(_) => {
                    self.sample(at_ms);
                    self.next_ms += CYCLE_MS;
                }
                Search::Scan(every_ms) => {
                    for key in self.mortal.clone() {
                        self.look(key, at_ms);
                    }
                    self.next_ms += every_ms;
                }
            }
        }
    }

    fn apply(&mut self, event: &Event) {
        match event.what {
            What::Hit(_) => {}
            What::Miss | What::Delete => self.remove(event.key, event.at_ms),
            What::Store(object) => self.store(event.key, object, event.at_ms),
        }
    }

    fn held_bytes(&self) -> u64 {
        self.bytes
    }

    fn ledger(self: Box<Self>) -> Ledger {
        self.ledger
    }
}

#[cfg(test)]
mod tests {
    use super::super::course::Course;
    use super::super::course::tests::{get, set};
    use super::super::meter::tests::held;
    use super::*;

    #[test]
    fn lazy_frees_what_is_touched_and_never_anything_else() {
        let requests = [
            set(0, 1, 100, 2_000),
            set(0, 2, 10, 2_000),
            set(0, 3, 1, 2_000),
            get(4_000, 1),
            set(5_500, 3, 2, 60_000),
        ];
        let course = Course::of(&requests, 8_000);
        let (samples, ledger) = held(&course, Table::lazy());
        // Key 1 goes when it is read, the old key 3 when it is replaced; nobody asks for key 2.
        assert_eq!(samples, [111, 111, 111, 111, 11, 11, 12, 12, 12]);
        assert_eq!((ledger.lateness(), ledger.looked), (vec![2_000, 3_500], 0));
    }

    #[test]
    fn a_scan_frees_all_the_dead_at_once_and_looks_at_every_key() {
        let requests = [
            set(0, 1, 100, 1_500),
            set(0, 2, 10, 60_000),
            set(100, 3, 1, FOREVER),
        ];
        let course = Course::of(&requests, 6_000);
        let (samples, ledger) = held(&course, Table::scan(3_000));
        assert_eq!(samples, [110, 111, 111, 11, 11, 11, 11]);
        // Two keys that have a time to live at 3 s, one at 6 s.
        assert_eq!((ledger.lateness(), ledger.looked), (vec![1_500], 3));
    }

    #[test]
    fn samples_go_on_while_more_than_a_tenth_is_dead() {
        let requests: Vec<_> = (0..1_000)
            .map(|key| set(0, key, 1, if key < 600 { 950 } else { 60_000 }))
            .collect();
        let course = Course::of(&requests, 10_000);
        let (samples, ledger) = held(&course, Table::sampling(1));
        // At 1 s, the first cycle after the deaths, most are gone; each later cycle looks at 20 at least.
        assert!(samples[0] == 1_000 && samples[1] < 550, "{samples:?}");
        assert!(
            samples[10] >= 400 && samples[10] < samples[1],
            "{samples:?}"
        );
        assert!(ledger.looked >= 100 * 20, "{}", ledger.looked);
        assert!(ledger.lateness().contains(&50));
    }
}
