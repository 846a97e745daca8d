//! A cache on huge pages, where there are any, is a cache like any other.

use std::time::Duration;

use tidewheel::{Cache, ManualClock};

use crate::loading::{Valid, by_hand};

const KEYS: u64 = 50_000;
const TTL: Duration = Duration::from_secs(60);

#[test]
fn a_cache_on_huge_pages_is_filled_expires_and_is_filled_again() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> = by_hand(&clock).huge_pages(true).shards(4).valid();
    for round in 0..3 {
        for key in 0..KEYS {
            match key % 10 {
                0 => cache.insert(key, key + 7),
                _ => cache.insert_with_ttl(key, key + 7, TTL),
            }
        }
        let found = (0..KEYS).filter(|key| cache.get(key) == Some(key + 7));
        assert_eq!(found.count() as u64, KEYS, "round {round}");
        clock.advance(TTL + Duration::from_millis(2));
        cache.run_due();
        assert_eq!(cache.len() as u64, KEYS / 10);
        if round == 1 {
            cache.invalidate_all();
            assert!(cache.is_empty());
        }
    }
}
