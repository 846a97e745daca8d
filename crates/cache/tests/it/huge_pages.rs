//! A cache on huge pages, where there are any, is a cache like any other.

use std::time::Duration;

use tidewheel::{Cache, Driver, ManualClock};

const KEYS: u64 = 50_000;
const TTL: Duration = Duration::from_secs(60);

fn cache(clock: &ManualClock) -> Cache<u64, u64> {
    let builder = Cache::builder().unbounded().no_default_ttl();
    let builder = builder.huge_pages(true).shards(4);
    let builder = builder.clock(clock.clone()).driver(Driver::Manual);
    builder.build().unwrap()
}

fn fill(cache: &Cache<u64, u64>) {
    for key in 0..KEYS {
        if key % 10 == 0 {
            cache.insert(key, key + 7);
        } else {
            cache.insert_with_ttl(key, key + 7, TTL);
        }
    }
}

#[test]
fn a_cache_on_huge_pages_is_filled_expires_and_is_filled_again() {
    let clock = ManualClock::new();
    let cache = cache(&clock);
    for round in 0..2 {
        fill(&cache);
        let found = (0..KEYS).filter(|key| cache.get(key) == Some(key + 7));
        assert_eq!(found.count() as u64, KEYS, "round {round}");
        clock.advance(TTL + Duration::from_millis(2));
        cache.run_due();
        assert_eq!(cache.len() as u64, KEYS / 10);
        assert!((0..KEYS).all(|key| cache.get(&key).is_some() == (key % 10 == 0)));
    }
    cache.invalidate_all();
    assert!(cache.is_empty());
    fill(&cache);
    assert_eq!(cache.get(&(KEYS - 1)), Some(KEYS + 6));
}
