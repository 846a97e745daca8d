//! Configurations that `build` refuses, with an error that says what to do.

use std::time::Duration;

use tidewheel::{BuildError, Builder, Cache, Driver, Lifetime, ManualClock, SharedDriver};

use crate::loading::Valid;

fn builder(driver: impl Into<Driver>) -> Builder<u64, u64> {
    Cache::builder()
        .unbounded()
        .no_default_ttl()
        .clock(ManualClock::new())
        .driver(driver)
}

fn refusal(builder: Builder<u64, u64>) -> String {
    let refused = builder.build().expect_err("not as it must be");
    assert_ne!(refused, BuildError::TtlUnanswered);
    refused.to_string()
}

#[test]
fn a_nul_in_a_name_is_an_error_of_build_and_no_panic() {
    let expected = "name takes text without a NUL character";
    assert_eq!(refusal(builder(Driver::Manual).name("a\0b")), expected);
    assert_eq!(refusal(builder(Driver::Task).name("\0")), expected);
    #[cfg(all(feature = "system", not(target_family = "wasm")))]
    {
        assert_eq!(refusal(builder(Driver::Thread).name("ab\0")), expected);
        let driver = SharedDriver::threads_named("a\0b", 1);
        let expected = "start the driver thread: its name has a NUL character";
        assert_eq!(refusal(builder(&driver)), expected);
        assert_eq!(refusal(builder(&driver)), expected, "once more");
    }
    let named = builder(SharedDriver::task()).name("Läufer 7").build();
    assert!(named.is_ok(), "anything else will do");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let manual = || builder(Driver::Manual);
    let refreshing = || manual().refresh_with(|key: &u64| Ok::<_, String>(key + 1));
    let fraction = "refresh_after takes a fraction from 0 to 1";
    for (builder, expected) in [
        (
            manual().time_to_live(Duration::ZERO),
            "time_to_live takes more than zero: else no entry would live",
        ),
        (
            manual().time_to_idle(Duration::ZERO),
            "time_to_idle takes more than zero: else no entry would live",
        ),
        (
            refreshing(),
            "refresh_with needs refresh_after, which says when: a fraction of the time to live, \
             or 1 if each entry says it by Lifetime::fresh_for",
        ),
        (refreshing().refresh_after(-0.1), fraction),
        (refreshing().refresh_after(1.1), fraction),
        (refreshing().refresh_after(f64::NAN), fraction),
    ] {
        assert_eq!(refusal(builder), expected);
    }
}

#[test]
fn with_refresh_after_1_only_what_says_its_own_freshness_is_refreshed() {
    let clock = ManualClock::new();
    let cache = builder(Driver::Manual)
        .time_to_live(Duration::from_secs(10))
        .refresh_after(1.0)
        .refresh_with(|key: &u64| Ok::<_, String>(key + 1))
        .clock(clock.clone())
        .valid();
    cache.insert(1, 0);
    cache.insert_with(
        2,
        0,
        Lifetime::configured().fresh_for(Duration::from_secs(1)),
    );
    clock.advance(Duration::from_millis(9_999));
    assert_eq!((cache.get(&1), cache.get(&2)), (Some(0), Some(0)));
    assert_eq!(cache.run_refreshes(9), 1);
    assert_eq!((cache.get(&1), cache.get(&2)), (Some(0), Some(3)));
}
