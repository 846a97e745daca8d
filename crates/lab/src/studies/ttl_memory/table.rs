//! A table of objects that are removed one by one: on touch alone, by samples, or by a scan.

use super::strategy::Strategy;
use crate::hit_ratios::bounds::{Event, Object, RequestKind};
use crate::studies::expiry::caches::keyed::{Keyed, Slab};
use crate::studies::expiry::strategies::{Expiry, NEVER, Sampling, Scan};

/// Objects by key. An object that a client finds dead is removed at once, whoever else searches.
pub(super) struct Table {
    objects: Keyed<u64, Object>,
    bytes: u64,
}

impl Table {
    /// Removed only when touched: a walk that never comes.
    pub(super) fn lazy() -> Self {
        Self::scan(NEVER)
    }

    /// Samples as Redis does. The limit of its processor time is left out: virtual time stands
    /// still meanwhile. Its newer versions walk the table in hash order, which is as random and
    /// never the same key twice in a round.
    pub(super) fn sampling(seed: u64) -> Self {
        Self::new(Box::new(Sampling::new(0, seed, || 0)))
    }

    /// A walk over everything every so often, as memcached's crawler.
    pub(super) fn scan(every_ms: u64) -> Self {
        Self::new(Box::new(Scan::new(0, every_ms)))
    }

    fn new(search: Box<dyn Expiry<Slab<u64, Object>>>) -> Self {
        Self {
            objects: Keyed::new(search),
            bytes: 0,
        }
    }

    fn remove(&mut self, key: u64) {
        let object = self.objects.remove(&key);
        self.bytes -= object.map_or(0, |object| u64::from(object.bytes));
    }
}

impl Strategy for Table {
    fn run_to(&mut self, now_ms: u64) {
        let (mut due, mut removed) = (Vec::new(), Vec::new());
        while let Some(at_ms) = self.objects.wake().filter(|at_ms| *at_ms <= now_ms) {
            let objects = &mut self.objects;
            objects.advance(at_ms, u32::MAX, &mut due, &mut removed);
            let bytes = removed.drain(..).map(|(entry, _)| entry.value.bytes);
            self.bytes -= bytes.map(u64::from).sum::<u64>();
        }
    }

    fn apply(&mut self, event: &Event) {
        match event.what {
            RequestKind::Hit(_) => {}
            RequestKind::Miss => self.remove(event.key),
            RequestKind::Store(object) => {
                self.remove(event.key);
                self.bytes += u64::from(object.bytes);
                let (deadline_ms, now_ms) = (object.deadline_ms, event.at_ms);
                self.objects.insert(event.key, object, deadline_ms, now_ms);
            }
        }
    }

    fn held_bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::course::Course;
    use super::super::course::tests::{get, set};
    use super::super::strategy::held;
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
        // Key 1 goes when it is read, and a byte is fetched; the old key 3 when it is replaced;
        // nobody asks for key 2.
        let samples = held(&course, &mut Table::lazy());
        assert_eq!(samples, [111, 111, 111, 111, 12, 12, 13, 13, 13]);
    }

    #[test]
    fn a_scan_frees_all_the_dead_at_once() {
        let requests = [set(0, 1, 100, 1_500), set(0, 2, 10, 60_000)];
        let course = Course::of(&requests, 6_000);
        let samples = held(&course, &mut Table::scan(3_000));
        assert_eq!(samples, [110, 110, 110, 10, 10, 10, 10]);
    }

    #[test]
    fn samples_go_on_while_more_than_a_tenth_is_dead() {
        let requests: Vec<_> = (0..1_000)
            .map(|key| set(0, key, 1, if key < 600 { 950 } else { 60_000 }))
            .collect();
        let course = Course::of(&requests, 10_000);
        let samples = held(&course, &mut Table::sampling(1));
        // At 1 s, the first cycle after the deaths, most are gone; later cycles find some of the
        // rest.
        assert!(samples[0] == 1_000 && samples[1] < 550, "{samples:?}");
        assert!((400..samples[1]).contains(&samples[10]), "{samples:?}");
    }
}
