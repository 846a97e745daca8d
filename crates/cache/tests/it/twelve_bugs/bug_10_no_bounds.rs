//! Bug 10: a map called a cache, without a time to live and without a bound.

use std::collections::HashMap;
use std::sync::RwLock;
use std::time::Duration;

use tidewheel::{BuildError, Cache, Clock};

use super::stage::{SECOND, StageClock, Valid, tidewheel};

const CAPACITY: u64 = 10_000;

/// The script's view of a cache.
trait Filled {
    fn set(&self, key: u32);
    fn tick(&self) {}
    fn len(&self) -> usize;
}

/// Keeps everything for ever.
#[derive(Default)]
struct JustAMap(RwLock<HashMap<u32, u32>>);

impl Filled for JustAMap {
    fn set(&self, key: u32) {
        self.0.write().expect("whole").insert(key, key);
    }

    fn len(&self) -> usize {
        self.0.read().expect("whole").len()
    }
}

impl Filled for Cache<u32, u32> {
    fn set(&self, key: u32) {
        self.insert(key, key);
    }

    fn tick(&self) {
        self.advance(self.now(), u32::MAX);
    }

    fn len(&self) -> usize {
        Self::len(self)
    }
}

/// Two weeks of new keys, one every ten seconds, and then an hour of silence. Returns the most
/// entries held at a time, and those that are left.
fn two_weeks(cache: &dyn Filled, clock: &StageClock) -> (usize, usize) {
    let mut most = 0;
    let mut key = 0;
    let start = clock.now();
    while clock.now() - start < Duration::from_secs(14 * 24 * 3600) {
        clock.advance(10 * SECOND);
        cache.tick();
        cache.set(key);
        key += 1;
        most = most.max(cache.len());
    }
    clock.advance(Duration::from_secs(3600));
    cache.tick();
    (most, cache.len())
}

#[test]
fn bug_10_neither_ttl_nor_bound() {
    const STORES: usize = 14 * 24 * 360;
    let clock = StageClock::new();
    assert_eq!(two_weeks(&JustAMap::default(), &clock), (STORES, STORES));

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
    assert_eq!(two_weeks(&cache, &clock), (360, 0));
    assert_eq!(cache.stats().evictions, 0);

    // The capacity alone bounds it: keys without an end, as the caller said explicitly.
    let clock = StageClock::new();
    let cache = Cache::builder()
        .max_capacity(CAPACITY)
        .no_default_ttl()
        .clock(clock.clone())
        .driver(tidewheel::Driver::Manual)
        .valid();
    let (most, left) = two_weeks(&cache, &clock);
    assert_eq!((most as u64, left as u64), (CAPACITY, CAPACITY));
    assert_eq!(cache.stats().evictions, STORES as u64 - CAPACITY);
    assert_eq!(cache.stats().expirations, 0);
}
