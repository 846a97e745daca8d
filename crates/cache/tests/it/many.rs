//! Many keys at once: what `get` and `insert` do for each, in order, whatever their number.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tidewheel::{Cache, Lifetime, ManualClock};

use crate::loading::{Heeded, Valid, by_hand, manual};

/// More than are looked for ahead of their turn.
const MANY: u64 = 100;

fn cache(clock: &ManualClock) -> Cache<u64, u64> {
    manual(clock).valid()
}

/// Found by an attack: what such an iterator gave after its first `None` was stored, and answered.
#[test]
fn an_iterator_that_goes_on_after_its_end_is_not_asked_again() {
    let clock = ManualClock::new();
    for end in [1, 4, 16, 17, 20] {
        let cache = cache(&clock);
        let mut asked = 0;
        cache.insert_many(std::iter::from_fn(|| {
            asked += 1;
            (asked != end).then_some((asked as u64, 0))
        }));
        assert_eq!((cache.len(), asked), (end - 1, end));
        let mut asked = 0;
        let keys = std::iter::from_fn(|| {
            asked += 1;
            (asked != end).then_some(&7)
        });
        assert_eq!(cache.get_many(keys).len(), end - 1);
        assert_eq!(asked, end);
    }
}

#[test]
fn an_iterator_that_panics_leaves_what_was_stored_before() {
    let cache = cache(&ManualClock::new());
    let entries = (0..MANY).map(|key| {
        assert!(key < 40, "no more");
        (key, key)
    });
    catch_unwind(AssertUnwindSafe(|| cache.insert_many(entries))).expect_err("it panics");
    let stored = cache.len();
    assert!((1..=40).contains(&stored), "{stored}");
    cache.insert_many([(7, 8)]);
    assert_eq!(cache.get(&7), Some(8));
    cache.validate();
}

/// One shard: the others may have no deadline at all.
fn counted() -> (Cache<u64, u64>, impl Fn() -> u64) {
    let readings = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&readings);
    let clock = Heeded::new(&ManualClock::new(), move || {
        counted.fetch_add(1, Relaxed);
    });
    let cache = by_hand(&clock).max_capacity(MANY).shards(1).valid();
    (cache, move || readings.swap(0, Relaxed))
}

#[test]
fn a_cache_without_deadlines_reads_no_clock() {
    let (cache, readings) = counted();
    readings();
    for key in 0..3 * MANY {
        cache.insert(key, key);
        assert_eq!(cache.get(&key), Some(key));
        assert_eq!(cache.get(&(key + 1)), None);
        assert_eq!(cache.get_or_load(key, || unreachable!("there")), key);
    }
    assert_eq!(readings(), 0, "nothing ends");
    cache.insert_with_ttl(1, 1, Duration::from_secs(9));
    assert_eq!(readings(), 1);
    assert_eq!(cache.get(&1), Some(1));
    assert!(readings() > 0, "something ends");
}

#[test]
fn many_keys_take_one_reading_of_the_clock_for_sixteen() {
    let (cache, readings) = counted();
    let ttl = Lifetime::ttl(Duration::from_secs(9));
    readings();
    cache.insert_many_with((0..64).map(|key| (key, key)), &ttl);
    assert_eq!(readings(), 4);
    let keys: Vec<u64> = (0..64).collect();
    assert_eq!(cache.get_many(&keys).into_iter().flatten().count(), 64);
    assert_eq!(readings(), 4);
}
