//! When the cache is full, entries that are due go first, under their own cause, before any live
//! one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Condition, ManualClock, Removal};

use crate::loading::{Valid, by_hand};

const CAPACITY: u32 = 1000;
const FIRST_NEW: u32 = 10_000;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns which entries left, and why, after 500 insertions into a full cache. Half of its entries
/// expired an hour ago, but no driver ran. Before that, the deadline of each had been moved `moved`
/// times.
fn left_when_half_is_due(moved: u64) -> BTreeMap<(&'static str, String), u32> {
    let clock = ManualClock::new();
    let left = Arc::new(Mutex::new(BTreeMap::new()));
    let heard = Arc::clone(&left);
    let cache = by_hand(&clock)
        .max_capacity(CAPACITY.into())
        .shards(1)
        .eviction_listener(move |removal: Removal<u32, u32>| {
            let who = match removal.key {
                FIRST_NEW.. => "new",
                key if key.is_multiple_of(2) => "due",
                _ => "live",
            };
            let mut left = heard.lock().expect("unpoisoned");
            *left
                .entry((who, format!("{:?}", removal.cause)))
                .or_default() += 1;
        })
        .valid();
    for key in 0..CAPACITY {
        cache.insert(key, key);
    }
    for _ in 0..5 {
        for key in 0..CAPACITY {
            cache.get(&key);
        }
    }
    for less in 0..=moved {
        for key in (0..CAPACITY).step_by(2) {
            cache.expire(&key, seconds(3600 - less), Condition::Always);
        }
    }
    clock.advance(seconds(7200));
    for key in 0..CAPACITY / 2 {
        cache.insert(FIRST_NEW + key, 0);
    }
    while cache.advance(cache.now(), 1000).backlog {}
    cache.validate();
    left.lock().expect("unpoisoned").clone()
}

/// Before the record of an expired entry there may be records of deadlines that were moved. A
/// search looks at a bounded number of records.
#[test]
fn an_expired_entry_is_never_announced_as_evicted_though_its_deadline_was_moved() {
    for moved in [1, 4, 20] {
        let left = left_when_half_is_due(moved);
        let due: Vec<_> = left.iter().filter(|((who, _), _)| *who == "due").collect();
        let expected = (("due", "Expired".to_owned()), CAPACITY / 2);
        assert_eq!(due, [(&expected.0, &expected.1)], "moved {moved} times");
        let others: u32 = left.values().sum::<u32>() - CAPACITY / 2;
        assert!(others <= 8, "moved {moved} times: {left:?}");
    }
}
