//! An origin that fails: how often it is asked, what is served meanwhile, and how long its errors
//! are remembered.

use std::time::Duration;

use tidewheel::{Cache, ManualClock};

use crate::loading::{Failure, MS, Valid, by_hand};

const SECOND: Duration = Duration::from_secs(1);

#[cfg(feature = "serde")]
#[test]
fn a_restored_entry_is_kept_as_long_after_its_end_as_was_said() {
    const HOUR: Duration = Duration::from_secs(3600);
    let clock = ManualClock::new();
    let build = || -> Cache<u64, u64> {
        let builder = by_hand(&clock).time_to_live(10 * SECOND);
        builder.stale_on_error(HOUR).valid()
    };
    let cache = build();
    cache.insert_with(1, 10, tidewheel::Lifetime::configured().stale_for(2 * HOUR));
    clock.advance(SECOND);
    let restored = build();
    restored.restore(cache.snapshot()).expect("this version's");
    assert_eq!(restored.ttl(&1), tidewheel::Ttl::Left(9 * SECOND));
    clock.advance(9 * SECOND);
    assert_eq!(restored.get(&1), None);
    clock.advance(2 * HOUR - MS);
    let down = || Err(Failure(500));
    assert_eq!(restored.try_get_or_load(1, down), Ok(10));
}

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
