//! Bug 10: a map called a cache, without a time to live and without a bound.

use std::collections::HashMap;
use std::time::Duration;

use tidewheel::{BuildError, Cache};

use super::stage::{SECOND, StageClock, Valid, tidewheel};

const CAPACITY: u64 = 10_000;
const STORES: usize = 14 * 24 * 360;

/// Two weeks of new keys, one every ten seconds, and then an hour of silence. `store` stores a key,
/// or only lets the cache do its work, and tells how many entries are held. Returns the most held
/// at a time, and those that are left.
fn two_weeks(clock: &StageClock, mut store: impl FnMut(Option<u32>) -> usize) -> (usize, usize) {
    let most = (0..STORES as u32).map(|key| {
        clock.advance(10 * SECOND);
        store(None);
        store(Some(key))
    });
    let most = most.max().unwrap_or(0);
    clock.advance(Duration::from_secs(3600));
    (most, store(None))
}

fn ours(cache: &Cache<u32, u32>, key: Option<u32>) -> usize {
    match key {
        Some(key) => cache.insert(key, key),
        None => _ = cache.run_due(),
    }
    cache.len()
}

#[test]
fn bug_10_neither_ttl_nor_bound() {
    // A map keeps everything for ever.
    let mut map = HashMap::new();
    let faulty = two_weeks(&StageClock::new(), |key| {
        map.extend(key.map(|key| (key, key)));
        map.len()
    });
    assert_eq!(faulty, (STORES, STORES));

    let unanswered = Cache::<u32, u32>::builder().max_capacity(CAPACITY).build();
    assert_eq!(unanswered.err(), Some(BuildError::TtlUnanswered));
    let unanswered = Cache::<u32, u32>::builder().time_to_live(SECOND).build();
    assert_eq!(unanswered.err(), Some(BuildError::CapacityUnanswered));

    // The TTL alone bounds it: an hour's keys.
    let clock = StageClock::new();
    let cache = tidewheel(&clock)
        .max_capacity(CAPACITY)
        .time_to_live(Duration::from_secs(3600))
        .valid();
    assert_eq!(two_weeks(&clock, |key| ours(&cache, key)), (360, 0));
    assert_eq!(cache.stats().evictions, 0);

    // The capacity alone bounds it: keys without an end, as the caller said explicitly.
    let clock = StageClock::new();
    let cache = Cache::builder()
        .max_capacity(CAPACITY)
        .no_default_ttl()
        .clock(clock.clone())
        .driver(tidewheel::Driver::Manual)
        .valid();
    let (most, left) = two_weeks(&clock, |key| ours(&cache, key));
    assert_eq!((most as u64, left as u64), (CAPACITY, CAPACITY));
    assert_eq!(cache.stats().evictions, STORES as u64 - CAPACITY);
    assert_eq!(cache.stats().expirations, 0);
}
