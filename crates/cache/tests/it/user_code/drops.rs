//! Drops that panic.

use std::time::Duration;

use tidewheel::{Cache, ManualClock};

use super::hooks::*;
use crate::loading::by_hand;

#[test]
fn a_drop_that_panics_is_counted_and_ends_no_operation() {
    type Leave = fn(&Cache<u32, Bomb>, &ManualClock);
    let replace: Leave = |cache, _| {
        // Replaced, and the clone that the closure was shown.
        cache.update(&1, |old| Bomb {
            weight: old.weight,
            armed: false,
        });
    };
    let refuse: Leave = |cache, _| {
        let version = cache.version(&1).expect("it is there");
        cache.insert(1, Bomb::armed(1));
        assert!(cache.compare_and_set(1, version, Bomb::armed(1)).is_err());
    };
    let overtake: Leave = |cache, _| {
        // What was loaded is not stored.
        std::mem::forget(cache.get_or_load(77, || {
            cache.insert(77, Bomb::armed(1));
            Bomb::armed(1)
        }));
    };
    let end_at_once: Leave = |cache, _| {
        assert!(cache.expire(&1, Duration::ZERO, tidewheel::Condition::Always));
    };
    let expire: Leave = |cache, clock| {
        clock.advance(10 * MS);
        assert_eq!(cache.advance(cache.now(), u32::MAX).expired, 10);
    };
    // What is not needed: an argument, and what a closure holds that is not called.
    let unused: Leave = |cache, _| {
        std::mem::forget(cache.entry(1).or_insert(Bomb::armed(1)));
        let unused = Bomb::armed(1);
        std::mem::forget(cache.entry(1).or_insert_with(move || unused));
        let unused = Bomb::armed(1);
        assert!(cache.update(&77, move |_| unused.clone()).is_none());
    };
    let leave: [(Leave, u64); 13] = [
        (|cache, _| assert!(cache.invalidate(&1)), 1),
        (|cache, _| cache.insert(1, Bomb::armed(0)), 1),
        (
            |cache, _| (50..60).for_each(|key| cache.insert(key, Bomb::armed(1))),
            10,
        ),
        (|cache, _| cache.invalidate_all(), 10),
        (
            |cache, _| assert_eq!(cache.invalidate_if(|_, _| true), 10),
            10,
        ),
        (end_at_once, 1),
        (expire, 10),
        (|cache, _| cache.close(), 10),
        (replace, 2),
        (
            |cache, _| assert!(!cache.insert_if_absent(1, Bomb::armed(1))),
            1,
        ),
        (refuse, 2),
        (overtake, 2),
        (unused, 3),
    ];
    for (number, (leave, panics)) in leave.into_iter().enumerate() {
        let clock = ManualClock::new();
        let cache: Cache<u32, Bomb> = by_hand(&clock)
            .max_capacity(10)
            .time_to_live(10 * MS)
            .valid();
        (0..10).for_each(|key| cache.insert(key, Bomb::armed(1)));
        leave(&cache, &clock);
        assert_eq!(cache.stats().drop_panics, panics, "case {number}");
        cache.validate();
    }
}
