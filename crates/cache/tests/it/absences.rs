//! Absences that say for how long they are remembered, and the error beside an old value.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use tidewheel::{Fetched, Lifetime, Loaded, ManualClock, Outcome, Presence};

use crate::loading::{Failure, MS, manual, unreached};
use crate::manual_poll::{Alarm, block_on, flagged, poll};

const SECOND: Duration = Duration::from_secs(1);

/// A 404 with `max-age`.
#[test]
fn an_absence_is_remembered_for_as_long_as_its_loader_says() {
    let clock = ManualClock::new();
    let cache = manual(&clock)
        .negative_ttl(100 * MS)
        .build()
        .expect("valid");
    let say = |key, presence: Presence<u64>| cache.fetch(key).load_with(|| presence).outcome;
    let said = [
        (1, Presence::Absent),
        (2, Presence::AbsentFor(SECOND)),
        (3, Presence::AbsentFor(MS)),
        (4, Presence::AbsentFor(Duration::ZERO)),
        (5, Presence::AbsentFor(Duration::MAX)),
        (6, Presence::AbsentFor(Duration::from_nanos(1))),
    ];
    for (key, presence) in said {
        assert_eq!(say(key, presence), Outcome::Loaded);
    }
    let remembered = || -> Vec<u64> {
        let asked = |key: &u64| cache.fetch(*key).optionally_load(|| None).outcome;
        // To ask for the others would have them remembered anew.
        let known = (1..=6).filter(|key| [2, 5].contains(key) || cache.stats().negatives > 0);
        known
            .filter(|key| asked(key) == Outcome::Negative)
            .collect()
    };
    assert_eq!(cache.stats().negatives, 5);
    for (key, millis) in [(6, 0), (3, 0), (1, 0)] {
        clock.advance(Duration::from_millis(millis));
        assert_eq!(say(key, Presence::Absent), Outcome::Negative);
    }
    assert_eq!(say(4, Presence::AbsentFor(Duration::ZERO)), Outcome::Loaded);
    clock.advance(MS);
    for key in [3, 6] {
        assert_eq!(
            say(key, Presence::AbsentFor(Duration::ZERO)),
            Outcome::Loaded
        );
    }
    clock.advance(98 * MS);
    assert_eq!(say(1, Presence::Absent), Outcome::Negative);
    clock.advance(MS);
    assert_eq!(say(1, Presence::AbsentFor(Duration::ZERO)), Outcome::Loaded);
    clock.advance(899 * MS);
    assert_eq!(remembered(), [2, 5]);
    clock.advance(MS);
    assert_eq!(say(2, Presence::AbsentFor(Duration::ZERO)), Outcome::Loaded);
    clock.advance(Duration::from_secs(86_400 * 365));
    assert_eq!(say(5, Presence::Absent), Outcome::Negative);
    cache.run_due();
    assert_eq!(cache.stats().negatives, 1);
    cache.validate();
}

/// Both shapes, on threads and in tasks, and a value all the same.
#[test]
fn a_presence_is_a_value_an_absence_or_an_error() {
    let cache = manual(&ManualClock::new())
        .negative_ttl(SECOND)
        .build()
        .expect("valid");
    let present = Presence::from(Loaded::new(7, Lifetime::ttl(SECOND)));
    assert_eq!(cache.fetch(1).load_with(|| present.clone()).value, Some(7));
    let failed = cache
        .fetch(2)
        .load_with(|| Err::<Presence<u64>, _>(Failure(1)))
        .value;
    assert_eq!(failed, Err(Arc::new(Failure(1))));
    let absent = Ok::<_, Failure>(Presence::from(None));
    let fetched = block_on(cache.fetch(3).load_with_async(ready(absent)));
    assert_eq!(
        (fetched.value, fetched.outcome),
        (Ok(None), Outcome::Loaded)
    );
    let found = block_on(cache.fetch(4).load_with_async(ready(present)));
    assert_eq!(found.value, Some(7));
    assert_eq!(cache.ttl(&4), tidewheel::Ttl::Left(SECOND));
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
        let cache = builder.build().expect("valid");
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
        .build()
        .expect("valid");
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

#[test]
fn those_who_wait_for_a_load_that_fails_see_its_error_beside_the_old_value() {
    let clock = ManualClock::new();
    let cache = manual(&clock)
        .stale_on_error(SECOND)
        .build()
        .expect("valid");
    cache.insert(1, 10);
    clock.advance(100 * MS);
    let go = AtomicBool::new(false);
    let mut leader = Box::pin(cache.fetch(1).try_load_async(async {
        flagged(&go).await;
        Err(Failure(7))
    }));
    let mut waits = Box::pin(
        cache
            .fetch(1)
            .try_load_async(async { Ok::<_, Failure>(unreached()) }),
    );
    let alarm = Alarm::new();
    assert!(poll(leader.as_mut(), &alarm).is_pending());
    assert!(poll(waits.as_mut(), &alarm).is_pending());
    go.store(true, SeqCst);
    for fetched in [poll(leader.as_mut(), &alarm), poll(waits.as_mut(), &alarm)] {
        let Poll::Ready(fetched) = fetched else {
            panic!("pending");
        };
        assert_eq!(fetched.value, Ok(10));
        assert_eq!(error_of(&fetched), (Outcome::StaleOnError, Some(7)));
        assert_eq!(error_of(&fetched.clone()), (Outcome::StaleOnError, Some(7)));
    }
}
