//! An origin that fails or has nothing: how often it is asked, what is served meanwhile, and how
//! long that is remembered.

use std::time::Duration;

use tidewheel::{Cache, Fetched, Loaded, ManualClock, Outcome, Presence};

use crate::loading::{Failure, MS, Valid, by_hand, manual};

const SECOND: Duration = Duration::from_secs(1);

/// 404 is remembered, 500 is not, and an error of another type as long as all others.
#[test]
fn each_error_is_remembered_as_long_as_is_said_of_it() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> = by_hand(&clock)
        .max_capacity(1000)
        .negative_ttl(5 * SECOND)
        .error_ttl(|failure: &Failure| match failure.0 {
            404 => 60 * SECOND,
            _ => Duration::ZERO,
        })
        .valid();
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

/// There is no room for it in a program that has not asked for any; zero is enough to ask.
#[test]
fn absences_with_a_time_of_their_own_need_a_cache_that_remembers() {
    let absent = || Presence::<u64>::AbsentFor(SECOND);
    for (remembers, loads) in [(false, 2), (true, 1)] {
        let builder = manual(&ManualClock::new());
        let builder = match remembers {
            true => builder.negative_ttl(Duration::ZERO),
            false => builder,
        };
        let cache = builder.valid();
        assert_eq!(cache.fetch(1).load_with(absent).value, None);
        assert_eq!(cache.fetch(1).load_with(absent).value, None);
        assert_eq!(cache.stats().loads, loads);
        assert_eq!(cache.optionally_get_or_load(2, || None), None);
        assert_eq!(cache.optionally_get_or_load(2, || None), None);
        assert_eq!(cache.stats().loads, loads + 2, "zero for all others");
    }
}

fn error_of<T>(fetched: &Fetched<T, Failure>) -> (Outcome, Option<u32>) {
    let error = fetched.error.as_ref().map(|error| error.0);
    (fetched.outcome, error)
}

/// The old value was all that one got.
#[test]
fn an_old_value_in_place_of_an_error_comes_with_the_error() {
    let clock = ManualClock::new();
    let cache = manual(&clock)
        .refresh_after(0.5)
        .stale_on_error(SECOND)
        .error_ttl(|error: &Failure| Duration::from_millis(error.0.into()))
        .valid();
    let ask = |error| error_of(&cache.fetch(1).try_load(|| Err(Failure(error))));
    assert_eq!(ask(0), (Outcome::Loaded, None), "the value is the error");
    cache.insert(1, 10);
    assert_eq!(ask(0), (Outcome::Hit, None));
    clock.advance(60 * MS);
    assert_eq!(ask(0), (Outcome::StaleOnError, Some(0)));
    assert_eq!(ask(1), (Outcome::Stale, None), "nobody has failed just now");
    clock.advance(60 * MS);
    cache.insert(1, 10);
    clock.advance(100 * MS);
    assert_eq!(ask(5000), (Outcome::StaleOnError, Some(5000)));
    assert_eq!(ask(1), (Outcome::StaleOnError, Some(5000)), "remembered");
    cache.insert(1, 10);
    clock.advance(100 * MS);
    assert_eq!(ask(0), (Outcome::StaleOnError, Some(0)));
    assert_eq!(ask(1), (Outcome::StaleOnError, None), "forgotten");
    let with = cache
        .fetch(1)
        .load_with(|| Err::<Loaded<u64>, _>(Failure(1)));
    assert_eq!(error_of(&with), (Outcome::StaleOnError, None));
}
