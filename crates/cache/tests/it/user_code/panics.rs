//! Hashes, comparisons, clones and callbacks that panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tidewheel::{Cache, Expiry, ManualClock};

use super::hooks::*;
use crate::loading::by_hand;

#[test]
fn an_insertion_whose_eq_panics_is_not_counted() {
    let clock = ManualClock::new();
    let (cache, living) = filled(&clock);
    set(&EQ, bang);
    panics(|| cache.insert(Key(4), Value::new(4, &living)));
    assert_eq!((cache.stats().inserts, cache.len()), (10, 10));
    cache.insert(Key(4), Value::new(4, &living));
    assert_eq!(cache.stats().inserts, 11);
    is_usable(&cache, &clock, &living);
}

/// To remove an entry its key is hashed again. If that panics, the entry must keep its timer.
#[test]
fn a_hash_that_panics_while_entries_expire_or_are_evicted_loses_none() {
    for wait in 0..30 {
        let clock = ManualClock::new();
        let (cache, living) = filled(&clock);
        break_hash(wait);
        let _ = catch_unwind(AssertUnwindSafe(|| {
            for key in 20..40 {
                cache.insert(Key(key), Value::new(key, &living));
            }
        }));
        mend_hash();
        cache.invalidate_all();
        for key in 0..10 {
            cache.insert_with_ttl(Key(key), Value::new(key, &living), 5 * MS);
        }
        clock.advance(5 * MS);
        break_hash(wait);
        for _ in 0..4 {
            let _ = catch_unwind(AssertUnwindSafe(|| cache.advance(cache.now(), 4)));
        }
        mend_hash();
        is_usable(&cache, &clock, &living);
    }
}

/// If the listener gets the value, the caller gets a clone. The clone is made before anything is
/// removed.
#[test]
fn a_clone_that_panics_in_remove_keeps_the_entry_and_its_event() {
    let clock = ManualClock::new();
    let told = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&told);
    let cache: Shared = by_hand(&clock)
        .time_to_live(10 * MS)
        .eviction_listener(move |_| {
            count.fetch_add(1, SeqCst);
        })
        .build()
        .expect("valid");
    let living = Arc::default();
    cache.insert(Key(4), Value::new(4, &living));
    set(&CLONE, bang);
    panics(|| drop(cache.remove(&Key(4))));
    assert_eq!((cache.len(), told.load(SeqCst)), (1, 0));
    assert_eq!(cache.remove(&Key(4)).map(|value| value.0), Some(4));
    is_usable(&cache, &clock, &living);
    assert_eq!(told.load(SeqCst), 2);
}

#[test]
fn a_weigher_an_expiry_or_a_listener_that_panics_leaves_the_cache_whole() {
    #[derive(Debug)]
    struct Fragile;
    impl Expiry<u32, u32> for Fragile {
        fn expire_after_create(&self, _: &u32, value: &u32) -> Option<Duration> {
            assert_ne!(*value, 13, "bang");
            Some(10 * MS)
        }

        fn expire_after_read(
            &self,
            _: &u32,
            value: &u32,
            left: Option<Duration>,
        ) -> Option<Duration> {
            assert_ne!(*value, 14, "bang");
            left
        }
    }
    let clock = ManualClock::new();
    let told = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&told);
    let cache: Cache<u32, u32> = by_hand(&clock)
        .max_capacity(10)
        .expire_after(Fragile)
        .weigher(|_, value| {
            assert_ne!(*value, 15, "bang");
            1
        })
        .eviction_listener(move |removal| {
            count.fetch_add(1, SeqCst);
            assert!(removal.value % 2 == 0, "bang");
        })
        .build()
        .expect("valid");
    for value in [13, 15] {
        panics(|| cache.insert(1, value));
        assert_eq!(cache.peek(&1), None);
    }
    cache.insert(1, 14);
    panics(|| {
        cache.get(&1);
    });
    assert_eq!(cache.peek(&1), Some(14));
    for value in 100..120 {
        cache.insert(value, value);
    }
    clock.advance(10 * MS);
    while cache.advance(cache.now(), u32::MAX).backlog {}
    assert_eq!(cache.len(), 0);
    assert_eq!(told.load(SeqCst), 21, "each was announced");
    assert_eq!(cache.stats().listener_panics, 10);
    cache.validate();
}

/// When the hash of an entry on probation panicked, the entry lost its place in the queue, and
/// nothing could evict it any more.
#[test]
fn a_hash_that_panics_while_room_is_made_leaves_nothing_that_cannot_be_evicted() {
    for capacity in 1..5 {
        for wait in 0..12 {
            let clock = ManualClock::new();
            let cache: Shared = configured(&clock)
                .max_capacity(capacity)
                .weigher(|_, value| value.0)
                .build()
                .expect("valid");
            let living = Arc::default();
            for key in 0..4 {
                cache.insert(Key(key), Value::new(1, &living));
            }
            // Places whose entry is gone: from here on the queue asks for hashes.
            cache.invalidate(&Key(3));
            cache.insert(Key(4), Value::new(1, &living));
            break_hash(wait);
            for key in 5..8 {
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    cache.insert(Key(key), Value::new(capacity as u32, &living));
                }));
            }
            mend_hash();
            for key in 8..10 {
                cache.insert(Key(key), Value::new(1, &living));
                assert!(cache.weight() <= capacity, "{capacity}, hash {wait}");
            }
            cache.validate();
            drop(cache);
            assert_eq!(living.load(SeqCst), 0, "a value was not dropped");
        }
    }
}

/// Entries that had been removed before the panic were not dropped until the next operation.
#[test]
fn a_hash_that_panics_in_invalidate_if_keeps_no_removed_value() {
    for wait in 0..10 {
        let clock = ManualClock::new();
        let (cache, living) = filled(&clock);
        break_hash(wait);
        let result = catch_unwind(AssertUnwindSafe(|| cache.invalidate_if(|_, _| true)));
        mend_hash();
        assert!(result.is_err(), "hash {wait}");
        assert_eq!(living.load(SeqCst), cache.len() as u64, "hash {wait}");
        is_usable(&cache, &clock, &living);
    }
}
