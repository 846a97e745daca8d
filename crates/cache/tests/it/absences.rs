//! Absences that say for how long they are remembered, and the error beside an old value.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use tidewheel::{Fetched, Loaded, ManualClock, Outcome, Presence};

use crate::loading::{Failure, MS, Valid, manual, unreached};
use crate::manual_poll::{Alarm, flagged, poll};

const SECOND: Duration = Duration::from_secs(1);

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

#[test]
fn those_who_wait_for_a_load_that_fails_see_its_error_beside_the_old_value() {
    let clock = ManualClock::new();
    let cache = manual(&clock).stale_on_error(SECOND).valid();
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
