//! One capacity over many shards: nothing that fits is refused, nothing is lost in the accounts.

use tidewheel::{Builder, Cache, Driver, ManualClock};

use crate::loading::{Told, Valid, by_hand};

/// Values are weights.
fn builder(capacity: u64, shards: usize) -> (Builder<u32, u32>, ManualClock, Told<u32, u32>) {
    let clock = ManualClock::new();
    let events = Told::default();
    let builder = by_hand(&clock)
        .max_capacity(capacity)
        .weigher(|_, weight| *weight)
        .shards(shards)
        .eviction_listener(events.ear());
    (builder, clock, events)
}

fn cache(capacity: u64, shards: usize) -> Cache<u32, u32> {
    builder(capacity, shards).0.valid()
}

#[test]
fn a_cache_of_many_shards_holds_what_it_is_said_to_hold() {
    for shards in [1, 4, 32] {
        let capacity = 32_000;
        let cache = cache(capacity, shards);
        for key in 0..200_000 {
            cache.insert(key, 1);
        }
        let weight = cache.weight();
        assert!(weight <= capacity);
        // A portion or two of each shard's share may be lent and not used.
        let unused = capacity / 8;
        assert!(weight >= capacity - unused, "{weight} with {shards} shards");
    }
}

#[test]
fn the_heaviest_weights_do_not_overflow() {
    let cache = cache(u64::from(u32::MAX) * 3, 4);
    for key in 0..100 {
        cache.insert(key, u32::MAX);
        assert_eq!(cache.peek(&key), Some(u32::MAX));
        assert!(cache.weight() <= u64::from(u32::MAX) * 3);
    }
    // What is lent to one shard and not used may be short of a third.
    assert!((2..=3).contains(&cache.len()), "{}", cache.len());
    let unbounded: Cache<u32, u32> = Cache::builder()
        .unbounded()
        .weigher(|_, weight| *weight)
        .no_default_ttl()
        .driver(Driver::Manual)
        .valid();
    for key in 0..100 {
        unbounded.insert(key, u32::MAX);
    }
    assert_eq!(unbounded.weight(), u64::from(u32::MAX) * 100);
    unbounded.validate();
}

/// The weight of the replaced value was not counted as free. So other entries were evicted although
/// the new value weighed no more.
#[test]
fn a_heavy_value_that_replaces_one_as_heavy_evicts_nobody() {
    for shards in [1, 2, 4, 16] {
        let cache = cache(100, shards);
        cache.insert(0, 60);
        for key in 1..=40 {
            cache.insert(key, 1);
        }
        let before = cache.len();
        for round in 0..10 {
            cache.insert(0, 60);
            assert_eq!(cache.len(), before, "{shards} shards, round {round}");
        }
        assert_eq!(cache.update(&0, |weight| *weight), Some(60));
        let version = cache.version(&0).expect("there");
        assert!(cache.compare_and_set(0, version, 60).is_ok());
        assert_eq!(cache.entry(0).and_update(|_| 60).or_insert(60), 60);
        assert_eq!(cache.len(), before, "{shards} shards, changed in place");
        assert_eq!(cache.stats().evictions, 41 - before as u64);
        cache.validate();
    }
}
