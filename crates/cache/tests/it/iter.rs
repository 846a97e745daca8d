//! Iteration, and the forecast of what will expire.

use std::collections::HashSet;
use std::time::Duration;

use tidewheel::{Builder, Cache, Lifetime, ManualClock, Ttl};

use crate::loading::{MS, Valid, by_hand};

fn manual(clock: &ManualClock) -> Builder<u64, u64> {
    by_hand(clock)
}

#[test]
fn entries_that_stay_are_met_exactly_once_while_the_cache_grows_and_shrinks() {
    let cache = manual(&ManualClock::new()).shards(4).valid();
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

/// Twenty entries that live for twenty seconds, and have a tag.
fn twenty(clock: &ManualClock) -> Cache<u64, u64> {
    let cache = manual(clock).shards(1).valid();
    for key in 0..20 {
        let lifetime = Lifetime::ttl(Duration::from_secs(20)).tag("half");
        let plain = Lifetime::ttl(Duration::from_secs(20));
        cache.insert_with(key, 0, if key % 2 == 0 { lifetime } else { plain });
    }
    cache
}

#[test]
fn a_next_tells_what_is_there_then_and_not_when_its_batch_was_noted() {
    let clock = ManualClock::new();
    let cache = twenty(&clock);
    let (mut removed, mut values) = (cache.iter(), cache.iter());
    let (mut half, mut tagged) = (cache.iter(), cache.entries_with_tag("half"));
    let first = removed.next().expect("20 entries").0;
    let met = half.next().expect("20 entries").0;
    assert!(values.next().is_some() && tagged.next().is_some());
    for key in (1..20).step_by(4) {
        cache.remove(&key);
    }
    let kept = (0..20).filter(|key| key % 4 != 1 && *key != first).count();
    assert_eq!(removed.count(), kept);
    cache.invalidate_tag("half");
    let kept = (3..20).step_by(4).filter(|key| *key != met).count();
    assert_eq!(half.count(), kept);
    assert_eq!(tagged.next(), None);
    (0..20).for_each(|key| cache.insert(key, 1));
    assert!(values.map(|(_, value)| value).eq([1; 19]));
    // Another value without the tag is not met by it.
    let cache = twenty(&clock);
    let mut tagged = cache.entries_with_tag("half");
    assert!(tagged.next().is_some());
    (0..20).for_each(|key| cache.insert(key, 1));
    assert_eq!(tagged.next(), None);
}

#[test]
fn a_next_tells_the_time_that_is_left_then_and_nothing_that_has_died() {
    let clock = ManualClock::new();
    let cache = twenty(&clock);
    let (mut pairs, mut keys) = (cache.iter(), cache.keys());
    assert!(pairs.next().is_some() && keys.next().is_some());
    let mut left = 20;
    for (key, _, ttl) in cache.entries() {
        assert_eq!(ttl, Ttl::Left(Duration::from_secs(left)), "{key}");
        clock.advance(Duration::from_secs(1));
        left -= 1;
    }
    assert_eq!((left, pairs.next(), keys.next()), (0, None, None));
}

#[test]
fn the_forecast_tells_how_many_expire_when() {
    let clock = ManualClock::new();
    let cache = manual(&clock).valid();
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
