//! Iteration, and the forecast of what will expire.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tidewheel::{Builder, Cache, Driver, ManualClock, Ttl};

const MS: Duration = Duration::from_millis(1);

fn manual(clock: &ManualClock) -> Builder<u64, u64> {
    Cache::builder()
        .unbounded()
        .no_default_ttl()
        .clock(clock.clone())
        .driver(Driver::Manual)
}

#[test]
fn all_live_entries_are_met_once() {
    let clock = ManualClock::new();
    let cache = manual(&clock).build().expect("valid");
    assert_eq!(cache.iter().next(), None);
    for key in 0..5000 {
        if key % 3 == 0 {
            cache.insert_with_ttl(key, key + 1, (10 + key % 2 * 10) as u32 * MS);
        } else {
            cache.insert(key, key + 1);
        }
    }
    clock.advance(10 * MS);
    let mut met = HashMap::new();
    for (key, value, ttl) in cache.entries() {
        let expected = match key % 3 {
            0 => Ttl::Left(10 * MS),
            _ => Ttl::Forever,
        };
        assert_eq!((value, ttl), (key + 1, expected));
        assert!(met.insert(key, ()).is_none(), "{key} was met twice");
    }
    let alive = |key: &u64| !key.is_multiple_of(3) || key % 2 == 1;
    assert_eq!(met.len(), (0..5000).filter(alive).count());
    let keys: HashSet<u64> = cache.keys().collect();
    assert!(keys.iter().all(|key| met.contains_key(key)) && keys.len() == met.len());
    assert_eq!((&cache).into_iter().count(), met.len());
}

#[test]
fn entries_that_stay_are_met_exactly_once_while_the_cache_grows_and_shrinks() {
    let cache = manual(&ManualClock::new())
        .shards(4)
        .build()
        .expect("valid");
    for key in 0..3000 {
        cache.insert(key, 0);
    }
    let mut met = HashSet::new();
    let mut extra = 10_000;
    for (step, (key, _)) in cache.iter().enumerate() {
        if key < 3000 {
            assert!(met.insert(key), "{key} was met twice");
        }
        // Newcomers outnumber what is met, so they must not be followed for ever.
        if step < 2000 {
            for _ in 0..20 {
                extra += 1;
                cache.insert(extra, 0);
            }
        } else if extra > 10_000 {
            for key in (extra - 10).max(10_000)..=extra {
                cache.remove(&key);
            }
            extra -= 10;
            cache.advance(cache.now(), 50);
        }
    }
    assert_eq!(met.len(), 3000);
    cache.validate();
}

#[test]
fn the_forecast_tells_how_many_expire_when() {
    let clock = ManualClock::new();
    let cache = manual(&clock).build().expect("valid");
    for key in 0..1000 {
        cache.insert_with_ttl(key, 0, 100 * MS);
    }
    for key in 1000..1500 {
        cache.insert_with_ttl(key, 0, Duration::from_secs(3600));
    }
    cache.insert(9999, 0);
    let forecast = cache.forecast();
    assert_eq!((forecast.due(), forecast.total()), (0, 1500));
    assert_eq!(forecast.due_within(10 * MS), 0);
    assert_eq!(forecast.due_within(Duration::from_secs(10)), 1000);
    assert_eq!(forecast.due_within(Duration::from_secs(20_000)), 1500);
    let sum: u64 = forecast.windows().map(|(_, count)| count).sum();
    assert_eq!(sum, 1500);
    let mut begin = Duration::ZERO;
    for (window, _) in forecast.windows() {
        assert!(window.start == begin && window.end > begin);
        begin = window.end;
    }
    clock.advance(100 * MS);
    assert_eq!(cache.forecast().due(), 1000);
    while cache.advance(cache.now(), 1000).backlog {}
    assert_eq!((cache.forecast().due(), cache.forecast().total()), (0, 500));
}
