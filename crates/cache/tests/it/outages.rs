//! An origin that fails: how often it is asked, what is served meanwhile, and how long its errors
//! are remembered.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use tidewheel::{BuildError, Builder, Cache, Driver, ManualClock, Ttl};

use crate::loading::{Failure, MS};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Entries that live for ten seconds and are kept for an hour, for the case that the origin fails.
fn kept(clock: &ManualClock) -> Builder<u64, u64> {
    Cache::builder()
        .max_capacity(1000)
        .time_to_live(10 * SECOND)
        .stale_on_error(HOUR)
        .clock(clock.clone())
        .driver(Driver::Manual)
}

/// An origin that is down, and counts who asks.
#[derive(Default)]
struct Down(Cell<u64>);

impl Down {
    fn ask(&self, cache: &Cache<u64, u64>, key: u64) -> Result<u64, Arc<Failure>> {
        cache.try_get_or_load(key, || {
            self.0.set(self.0.get() + 1);
            Err(Failure(500))
        })
    }

    fn asked(&self) -> u64 {
        self.0.get()
    }
}

/// Every caller past the end called the loader.
#[test]
fn past_its_end_a_value_is_served_and_the_failing_origin_asked_once_in_a_backoff() {
    for (set, backoff) in [(None, SECOND), (Some(5 * SECOND), 5 * SECOND)] {
        let clock = ManualClock::new();
        let builder = kept(&clock);
        let cache = match set {
            Some(backoff) => builder.error_backoff(backoff),
            None => builder,
        };
        let cache = cache.build().expect("valid");
        cache.insert(1, 10);
        clock.advance(10 * SECOND);
        let origin = Down::default();
        for round in 1..=3 {
            for _ in 0..100 {
                assert_eq!(origin.ask(&cache, 1), Ok(10));
            }
            clock.advance(backoff - MS);
            assert_eq!(origin.ask(&cache, 1), Ok(10));
            assert_eq!(origin.asked(), round, "asked once in {backoff:?}");
            clock.advance(MS);
        }
        assert_eq!(cache.get(&1), None, "a lookup does not see it");
        let stats = cache.stats();
        assert_eq!((stats.loads, stats.load_errors), (3, 3));
        assert_eq!((stats.stale_hits, stats.negative_hits), (303, 0));
        cache.validate();
    }
}

#[test]
fn no_old_value_is_served_past_its_grace_though_the_backoff_is_not_over() {
    let clock = ManualClock::new();
    let cache = kept(&clock).build().expect("valid");
    cache.insert(1, 10);
    clock.advance(10 * SECOND + HOUR - 500 * MS);
    let origin = Down::default();
    assert_eq!(origin.ask(&cache, 1), Ok(10));
    clock.advance(500 * MS);
    assert!(origin.ask(&cache, 1).is_err());
    assert_eq!(origin.asked(), 2);
}

/// A loader that cannot fail never gets a value whose time is over, as a read does not.
#[test]
fn a_loader_that_cannot_fail_gets_no_dead_value_while_one_that_can_does() {
    let clock = ManualClock::new();
    let cache = kept(&clock).build().expect("valid");
    cache.insert(1, 10);
    clock.advance(10 * SECOND);
    let origin = Down::default();
    assert_eq!(origin.ask(&cache, 1), Ok(10));
    let other = cache.try_get_or_load(1, || Err::<u64, _>("an error of another type"));
    assert_eq!(other, Ok(10));
    assert_eq!(cache.stats().loads, 1);
    assert_eq!(cache.get_or_load(1, || 11), 11);
    assert_eq!(cache.ttl(&1), Ttl::Left(10 * SECOND));
}

#[cfg(feature = "serde")]
#[test]
fn a_restored_entry_is_kept_as_long_after_its_end_as_was_said() {
    let clock = ManualClock::new();
    let build = || kept(&clock).build().expect("valid");
    let cache = build();
    cache.insert_with(1, 10, tidewheel::Lifetime::configured().stale_for(2 * HOUR));
    clock.advance(SECOND);
    let restored = build();
    restored.restore(cache.snapshot()).expect("this version's");
    assert_eq!(restored.ttl(&1), Ttl::Left(9 * SECOND));
    clock.advance(9 * SECOND);
    assert_eq!(restored.get(&1), None);
    clock.advance(2 * HOUR - MS);
    assert_eq!(Down::default().ask(&restored, 1), Ok(10));
}

/// 404 is remembered, 500 is not, and an error of another type as long as all others.
#[test]
fn each_error_is_remembered_as_long_as_is_said_of_it() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(1000)
        .no_default_ttl()
        .negative_ttl(5 * SECOND)
        .error_ttl(|failure: &Failure| match failure.0 {
            404 => 60 * SECOND,
            _ => Duration::ZERO,
        })
        .clock(clock.clone())
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    let asked = |key, status| {
        let before = cache.stats().loads;
        let answer = match status {
            0 => cache
                .try_get_or_load(key, || Err::<u64, _>("no route"))
                .is_err(),
            status => cache
                .try_get_or_load(key, || Err::<u64, _>(Failure(status)))
                .is_err(),
        };
        assert!(answer);
        cache.stats().loads > before
    };
    for (key, status) in [(1, 404), (2, 500), (3, 0)] {
        assert!(asked(key, status));
    }
    assert_eq!(
        [(1, 404), (2, 500), (3, 0)].map(|(key, status)| asked(key, status)),
        [false, true, false]
    );
    clock.advance(5 * SECOND);
    assert_eq!(
        [(1, 404), (2, 500), (3, 0)].map(|(key, status)| asked(key, status)),
        [false, true, true]
    );
    clock.advance(55 * SECOND);
    assert!(asked(1, 404));
    // Absences have the time of all others.
    assert_eq!(cache.optionally_get_or_load(4, || None), None);
    clock.advance(5 * SECOND - MS);
    assert_eq!(cache.optionally_get_or_load(4, || Some(1)), None);
    clock.advance(MS);
    assert_eq!(cache.optionally_get_or_load(4, || Some(1)), Some(1));
}

#[test]
fn a_panic_in_what_says_how_long_is_that_of_the_loader() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(1000)
        .no_default_ttl()
        .error_ttl(|failure: &Failure| panic!("for {}", failure.0))
        .clock(clock)
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    let load = || cache.try_get_or_load(1, || Err::<u64, _>(Failure(1)));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(load));
    assert!(panicked.is_err());
    assert_eq!(cache.stats().load_errors, 1);
    assert_eq!(cache.get_or_load(1, || 7), 7, "the next caller leads");
    cache.validate();
}

#[test]
fn how_many_answers_are_remembered_is_bounded_and_counted() {
    let build = |most| {
        Cache::<u64, u64>::builder()
            .max_capacity(1000)
            .no_default_ttl()
            .shards(1)
            .negative_ttl(SECOND)
            .negative_capacity(most)
            .clock(ManualClock::new())
            .driver(Driver::Manual)
            .build()
    };
    let cache = build(10).expect("valid");
    for key in 0..100 {
        assert_eq!(cache.optionally_get_or_load(key, || None), None);
    }
    let stats = cache.stats();
    assert_eq!((stats.negatives, stats.negatives_evicted), (10, 90));
    assert_eq!((stats.entries, stats.evictions), (0, 0));
    cache.validate();
    let refused = build(0).expect_err("no room at all");
    assert!(matches!(
        refused,
        BuildError::OutOfRange {
            option: "negative_capacity",
            ..
        }
    ));
}
