//! Drops that panic.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tidewheel::{Cache, ManualClock};

use super::hooks::*;
use crate::loading::by_hand;

/// The weight that a shard had been lent, or was about to be, was lost for ever.
#[test]
fn drops_that_panic_in_an_eviction_lose_none_of_the_capacity() {
    let cache: Cache<u32, Bomb> = by_hand(&ManualClock::new())
        .max_capacity(100)
        .weigher(|_, bomb: &Bomb| bomb.weight)
        .shards(8)
        .build()
        .expect("valid");
    for round in 0..20 {
        for key in 0..100 {
            cache.insert(round * 1000 + key, Bomb::armed(1));
        }
        // Of every shard something has to go.
        cache.insert(round * 1000 + 500, Bomb::armed(90));
        cache.insert(round * 1000 + 501, Bomb::armed(50));
        cache.validate();
    }
    let whole = Bomb {
        weight: 100,
        armed: false,
    };
    cache.insert(7, whole);
    assert!(cache.contains_key(&7), "the capacity is not what it was");
    assert_eq!(cache.weight(), 100);
    let stats = cache.stats();
    assert_eq!(stats.drop_panics, stats.evictions);
    cache.validate();
}

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
    let leave: [(Leave, u64); 12] = [
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
    ];
    for (number, (leave, panics)) in leave.into_iter().enumerate() {
        let clock = ManualClock::new();
        let cache: Cache<u32, Bomb> = by_hand(&clock)
            .max_capacity(10)
            .time_to_live(10 * MS)
            .build()
            .expect("valid");
        (0..10).for_each(|key| cache.insert(key, Bomb::armed(1)));
        leave(&cache, &clock);
        assert_eq!(cache.stats().drop_panics, panics, "case {number}");
        cache.validate();
    }
}

/// The returned clone was lost, and the panic reached a caller that had not caused it.
#[test]
fn a_drop_that_panics_in_an_argument_that_is_not_needed_harms_nobody() {
    type Call = fn(&Shared, u32, Value) -> Value;
    let calls: [Call; 3] = [
        |cache, key, unused| cache.entry(Key(key)).or_insert(unused),
        |cache, key, unused| cache.entry(Key(key)).or_insert_with(move || unused),
        |cache, key, unused| {
            let update = |old: &Value| Value::new(old.0, &old.1);
            let entry = cache.entry(Key(key)).and_update(update);
            entry.or_insert(unused)
        },
    ];
    for call in calls {
        for wait in 0..4 {
            let clock = ManualClock::new();
            let (cache, living) = filled(&clock);
            let unused = Value::new(99, &living);
            DROPS.set(wait);
            set(&DROP, bang);
            let value = call(&cache, 4, unused);
            let fired = !unset(&DROP);
            DROPS.set(0);
            assert_eq!(value.0, 4);
            assert_eq!(cache.stats().drop_panics, u64::from(fired));
            assert_eq!(living.load(SeqCst), 11, "the cache's ten and the answer");
            drop(value);
            is_usable(&cache, &clock, &living);
        }
    }
}

/// A closure that is never called is a user value too, and its drop may panic.
#[test]
fn an_update_of_a_missing_key_drops_its_closure_quietly() {
    let clock = ManualClock::new();
    let (cache, living) = filled(&clock);
    let held = Value::new(99, &living);
    set(&DROP, bang);
    let updated = cache.update(&Key(70), move |_| held.clone());
    assert!(updated.is_none() && !unset(&DROP));
    assert_eq!(cache.stats().drop_panics, 1);
    is_usable(&cache, &clock, &living);
}
