//! The bonus: a counter that is read, incremented and stored back. Two at a time count one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Cache, Clock, Compute, Loaded, Ttl};

use super::stage::{Intruder, LONG, MINUTE, SECOND, SHORT, StageClock, tidewheel};

/// The script's view of a cache: `pause` is called between reading and storing.
trait Counting: Send + Sync {
    fn bump(&self, key: u32, pause: &mut dyn FnMut());
    fn count(&self, key: u32) -> u64;
}

/// Reads, increments, stores: two atomic operations.
struct GetThenSet {
    clock: StageClock,
    entries: Mutex<HashMap<u32, (u64, Duration)>>,
}

impl Counting for GetThenSet {
    fn bump(&self, key: u32, pause: &mut dyn FnMut()) {
        let old = self.count(key);
        pause();
        let deadline = self.clock.now() + MINUTE;
        let mut entries = self.entries.lock().expect("whole");
        entries.insert(key, (old + 1, deadline));
    }

    fn count(&self, key: u32) -> u64 {
        let entries = self.entries.lock().expect("whole");
        entries
            .get(&key)
            .filter(|(_, deadline)| self.clock.now() < *deadline)
            .map_or(0, |(count, _)| *count)
    }
}

/// Tidewheel's three ways.
#[derive(Debug, Clone, Copy)]
enum Way {
    Update,
    Compute,
    CompareAndSet,
}

struct Ours {
    cache: Cache<u32, u64>,
    way: Way,
}

impl Counting for Ours {
    fn bump(&self, key: u32, pause: &mut dyn FnMut()) {
        let cache = &self.cache;
        match self.way {
            Way::Update => {
                let updated = cache.update(&key, |old| {
                    pause();
                    old + 1
                });
                assert!(updated.is_some(), "the script counts a key that is there");
            }
            Way::Compute => {
                let counted = cache.entry(key).compute(|old| {
                    pause();
                    Compute::Put(Loaded::from(old.map_or(1, |old| old + 1)))
                });
                assert!(counted.is_some());
            }
            Way::CompareAndSet => loop {
                let (old, version) = cache.get_with_version(&key).expect("it is there");
                pause();
                if cache.compare_and_set(key, version, old + 1).is_ok() {
                    return;
                }
            },
        }
    }

    fn count(&self, key: u32) -> u64 {
        self.cache.get(&key).unwrap_or(0)
    }
}

/// Somebody increments in the middle of an increment, and both go on to their ends.
fn count_after_two_bumps(cache: &Arc<dyn Counting>, patience: Duration) -> u64 {
    let mut intruder = None;
    cache.bump(1, &mut || {
        // Only once: a second attempt is not disturbed.
        intruder.get_or_insert_with(|| {
            let cache = Arc::clone(cache);
            let intruder = Intruder::enter(move || cache.bump(1, &mut || ()));
            let _ = intruder.is_done_within(patience);
            intruder
        });
    });
    intruder.expect("the bump pauses").leave();
    cache.count(1)
}

#[test]
fn bonus_a_read_modify_write_that_is_not_atomic() {
    let clock = StageClock::new();
    let faulty: Arc<dyn Counting> = Arc::new(GetThenSet {
        clock,
        entries: Mutex::new(HashMap::from([(1, (5, MINUTE))])),
    });
    assert_eq!(
        count_after_two_bumps(&faulty, LONG),
        6,
        "one of two is lost"
    );

    for (way, patience) in [
        (Way::Update, SHORT),
        (Way::Compute, SHORT),
        (Way::CompareAndSet, LONG),
    ] {
        let clock = StageClock::new();
        let cache: Cache<u32, u64> = tidewheel(&clock).build().expect("valid");
        cache.insert(1, 5);
        let ours: Arc<dyn Counting> = Arc::new(Ours {
            cache: cache.clone(),
            way,
        });
        assert_eq!(count_after_two_bumps(&ours, patience), 7, "{way:?}");
        cache.validate();
    }
}

/// While a closure computes one key's value, other keys and readers of this one get on.
#[test]
fn an_update_holds_up_writers_of_its_key_alone() {
    let clock = StageClock::new();
    let cache: Cache<u32, u64> = tidewheel(&clock).shards(1).build().expect("valid");
    cache.insert(1, 5);
    cache.insert(2, 50);
    let others = cache.clone();
    let updated = cache.update(&1, |old| {
        let intruder = Intruder::enter(move || {
            assert_eq!(others.get(&1), Some(5), "readers see the old value");
            assert_eq!(others.update(&2, |old| old + 1), Some(51));
            others.insert(3, 30);
        });
        assert!(intruder.is_done_within(LONG));
        intruder.leave();
        old + 1
    });
    assert_eq!((updated, cache.get(&1)), (Some(6), Some(6)));
    cache.validate();
}

/// An update keeps the time that is left, so a counter that is incremented all the time still ends.
#[test]
fn an_update_keeps_the_time_that_is_left() {
    let clock = StageClock::new();
    let cache: Cache<u32, u64> = tidewheel(&clock).build().expect("valid");
    cache.insert(1, 5);
    clock.advance(20 * SECOND);
    assert_eq!(cache.update(&1, |old| old + 1), Some(6));
    assert_eq!(cache.ttl(&1), Ttl::Left(40 * SECOND));
    clock.advance(40 * SECOND);
    assert_eq!(cache.update(&1, |old| old + 1), None);
}
