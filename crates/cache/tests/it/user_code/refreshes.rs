//! A key's `Eq` that panics where a refresh is queued, and where it begins.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tidewheel::{Cache, ManualClock};

use super::hooks::*;
use crate::loading::by_hand;

/// Every read asks for a refresh; two may wait.
fn stale() -> Cache<Key, u32> {
    by_hand(&ManualClock::new())
        .shards(1)
        .time_to_live(1000 * MS)
        .refresh_after(0.0)
        .refresh_queue(2)
        .refresh_with(|key: &Key| Ok::<_, String>(key.0 + 100))
        .valid()
}

/// Lets so many comparisons pass, then one panics.
fn break_eq(wait: u32) {
    set(&EQ, move || match wait.checked_sub(1) {
        Some(wait) => break_eq(wait),
        None => panic!("meant"),
    });
}

/// Each such panic took a place of the queue for ever.
#[test]
fn an_eq_that_panics_where_a_refresh_is_queued_takes_no_place_of_the_queue() {
    let cache = stale();
    for key in 0..3 {
        cache.insert(Key(key), key);
        break_eq(1);
        let read = catch_unwind(AssertUnwindSafe(|| cache.get(&Key(key))));
        assert!(read.is_err() && !unset(&EQ), "the second one");
        assert_eq!(cache.stats().refreshes_queued, 0);
    }
    assert_eq!(cache.get(&Key(0)), Some(0));
    assert_eq!(cache.get(&Key(1)), Some(1));
    assert_eq!(cache.stats().refreshes_queued, 2);
    assert_eq!(cache.run_refreshes(10), 2);
    let values = [0, 1, 2].map(|key| cache.peek(&Key(key)));
    assert_eq!(values, [Some(100), Some(101), Some(2)]);
    cache.validate();
}

/// It vanished: statistics told of no refresh, and the key was not queued again.
#[test]
fn an_eq_that_panics_where_a_refresh_begins_is_a_refresh_that_failed() {
    let cache = stale();
    cache.insert(Key(1), 1);
    assert_eq!(cache.get(&Key(1)), Some(1));
    break_eq(0);
    let ran = catch_unwind(AssertUnwindSafe(|| cache.run_refreshes(10)));
    assert!(!unset(&EQ), "it was called");
    assert_eq!(ran.ok(), Some(1));
    let stats = cache.stats();
    assert_eq!((stats.refreshes_begun, stats.refreshes_failed), (1, 1));
    assert_eq!((stats.refreshes_queued, stats.refreshes_running), (0, 0));
    // Nothing is left of it: the next read asks again.
    assert_eq!(cache.get(&Key(1)), Some(1));
    assert_eq!(cache.run_refreshes(10), 1);
    assert_eq!(cache.peek(&Key(1)), Some(101));
    assert_eq!(cache.stats().refreshes_done, 1);
}
