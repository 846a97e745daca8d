//! The bonus: a counter that is read, incremented and stored back. Two at a time count one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Cache, Compute, Loaded};

use super::stage::{Intruder, LONG, SHORT, StageClock, Valid, tidewheel};

/// A way to increment: what it is given is called between reading and storing.
type Bump = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

/// Somebody increments in the middle of an increment, and both go on to their ends.
fn two_at_a_time(bump: &Bump, patience: Duration) {
    let mut intruder = None;
    bump(&mut || {
        // Only once: a second attempt is not disturbed.
        intruder.get_or_insert_with(|| {
            let bump = Arc::clone(bump);
            let intruder = Intruder::enter(move || bump(&mut || ()));
            let _ = intruder.is_done_within(patience);
            intruder
        });
    });
    intruder.expect("the increment pauses").leave();
}

#[test]
fn bonus_a_read_modify_write_that_is_not_atomic() {
    let count = Arc::new(Mutex::new(5_u64));
    let faulty = Arc::clone(&count);
    // Reads, increments, stores: two atomic operations.
    let bump: Bump = Arc::new(move |pause| {
        let old = *faulty.lock().expect("whole");
        pause();
        *faulty.lock().expect("whole") = old + 1;
    });
    two_at_a_time(&bump, LONG);
    assert_eq!(*count.lock().expect("whole"), 6, "one of two is lost");

    type Way = fn(&Cache<u32, u64>, &mut dyn FnMut());
    let ways: [(Way, _); 3] = [
        (
            |cache, pause| {
                let updated = cache.update(&1, |old| {
                    pause();
                    old + 1
                });
                assert!(updated.is_some());
            },
            SHORT,
        ),
        (
            |cache, pause| {
                let counted = cache.entry(1).compute(|old| {
                    pause();
                    Compute::Put(Loaded::from(old.map_or(1, |old| old + 1)))
                });
                assert!(counted.is_some());
            },
            SHORT,
        ),
        (
            |cache, pause| loop {
                let (old, version) = cache.get_with_version(&1).expect("it is there");
                pause();
                if cache.compare_and_set(1, version, old + 1).is_ok() {
                    return;
                }
            },
            LONG,
        ),
    ];
    for (number, (way, patience)) in ways.into_iter().enumerate() {
        let cache: Cache<u32, u64> = tidewheel(&StageClock::new()).valid();
        cache.insert(1, 5);
        let own = cache.clone();
        let bump: Bump = Arc::new(move |pause| way(&own, pause));
        two_at_a_time(&bump, patience);
        assert_eq!(cache.get(&1), Some(7), "way {number}");
        cache.validate();
    }
}

/// While a closure computes one key's value, other keys and readers of this one get on.
#[test]
fn an_update_holds_up_writers_of_its_key_alone() {
    let cache: Cache<u32, u64> = tidewheel(&StageClock::new()).shards(1).valid();
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
