//! An origin that fails: how often it is asked, what is served meanwhile, and how long its errors
//! are remembered.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidewheel::{
    BuildError, Builder, Cache, Condition, Driver, Lifetime, Loaded, ManualClock, Outcome,
    RemovalCause, Ttl,
};

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

/// Until the next try the entry counted as fresh: HIT.
#[test]
fn past_its_soft_deadline_a_value_is_stale_until_a_load_succeeds() {
    let clock = ManualClock::new();
    let cache = kept(&clock).refresh_after(0.5).build().expect("valid");
    let ask = |loaded: Result<u64, Failure>| {
        let fetched = cache.fetch(1).try_load(|| loaded);
        (fetched.value, fetched.outcome)
    };
    let fails = || ask(Err(Failure(500)));
    assert_eq!(ask(Ok(10)), (Ok(10), Outcome::Loaded));
    clock.advance(5 * SECOND);
    assert_eq!(fails(), (Ok(10), Outcome::StaleOnError));
    // The next try is after half of what is left.
    for millis in [0, 1, 2498] {
        clock.advance(Duration::from_millis(millis));
        assert_eq!(fails(), (Ok(10), Outcome::Stale));
        assert_eq!(cache.get(&1), Some(10));
    }
    let stats = cache.stats();
    assert_eq!((stats.stale_hits, stats.loads), (7, 2));
    clock.advance(MS);
    assert_eq!(fails(), (Ok(10), Outcome::StaleOnError));
    assert_eq!(fails(), (Ok(10), Outcome::Stale));
    clock.advance(1250 * MS);
    assert_eq!(ask(Ok(11)), (Ok(11), Outcome::Loaded));
    assert_eq!(fails(), (Ok(11), Outcome::Hit));
}

/// The same of a refresher that fails.
#[test]
fn past_its_soft_deadline_a_value_is_stale_while_the_refresher_fails() {
    let clock = ManualClock::new();
    let cache = kept(&clock)
        .refresh_after(0.5)
        .refresh_with(|_: &u64| Err::<u64, _>(Failure(500)))
        .build()
        .expect("valid");
    cache.insert(1, 10);
    let ask = || cache.fetch(1).load(|| unreachable!("it is there")).outcome;
    clock.advance(5 * SECOND);
    for try_no in 1..=3 {
        assert_eq!(ask(), Outcome::Stale);
        cache.run_refreshes(10);
        assert_eq!(ask(), Outcome::Stale, "the refresh has failed");
        assert_eq!(cache.stats().refreshes_queued, 0, "and is put off");
        assert_eq!(cache.stats().refreshes_failed, try_no);
        clock.advance(2500 * MS / (1 << (try_no - 1)));
    }
    assert_eq!(cache.stats().stale_hits, 6);
}

/// A new time to live begins anew; what was said of the value's freshness stays, and is past.
#[test]
fn an_outage_is_over_with_a_new_time_to_live_and_goes_on_with_a_new_value() {
    let clock = ManualClock::new();
    let cache = kept(&clock).refresh_after(0.5).build().expect("valid");
    let said = Lifetime::configured().fresh_for(5 * SECOND);
    cache.insert(1, 10);
    cache.insert_with(2, 20, said);
    cache.insert(3, 30);
    clock.advance(5 * SECOND);
    let origin = Down::default();
    for key in 1..=3 {
        assert_eq!(origin.ask(&cache, key), Ok(key * 10));
    }
    let outcome = |key| cache.fetch(key).try_load(|| Err(Failure(500))).outcome;
    assert!((1..=3).all(|key| outcome(key) == Outcome::Stale));
    assert!(cache.expire(&1, 20 * SECOND, Condition::Always));
    assert!(cache.expire(&2, 20 * SECOND, Condition::Always));
    assert_eq!(cache.update(&3, |old| old + 1), Some(31));
    assert_eq!(outcome(1), Outcome::Hit);
    assert_eq!(outcome(2), Outcome::Stale);
    assert_eq!(outcome(3), Outcome::Stale, "its lifetime is as it was");
    cache.insert(3, 32);
    assert_eq!(outcome(3), Outcome::Hit);
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
fn without_a_backoff_every_caller_past_the_end_asks() {
    let clock = ManualClock::new();
    let cache = kept(&clock).error_backoff(Duration::ZERO).build();
    let cache = cache.expect("valid");
    cache.insert(1, 10);
    clock.advance(10 * SECOND);
    let origin = Down::default();
    for _ in 0..5 {
        assert_eq!(origin.ask(&cache, 1), Ok(10));
    }
    assert_eq!(origin.asked(), 5);
}

#[test]
fn a_value_that_came_after_an_error_is_loaded_and_kept_as_any_other() {
    let clock = ManualClock::new();
    let cache = kept(&clock).build().expect("valid");
    cache.insert(1, 10);
    clock.advance(10 * SECOND);
    let origin = Down::default();
    assert_eq!(origin.ask(&cache, 1), Ok(10));
    clock.advance(SECOND);
    assert_eq!(cache.try_get_or_load(1, || Ok::<_, Failure>(11)), Ok(11));
    assert_eq!(cache.ttl(&1), Ttl::Left(10 * SECOND));
    clock.advance(10 * SECOND);
    assert_eq!(origin.ask(&cache, 1), Ok(11));
    assert_eq!(origin.asked(), 2);
    // A write by hand ends the wait too.
    cache.insert(1, 12);
    cache.invalidate(&1);
    assert!(origin.ask(&cache, 1).is_err());
    assert_eq!(origin.asked(), 3);
}

#[test]
fn an_error_shortly_before_the_end_counts_beyond_it() {
    let clock = ManualClock::new();
    let cache = kept(&clock).refresh_after(0.5).build().expect("valid");
    cache.insert(1, 10);
    clock.advance(9_900 * MS);
    let origin = Down::default();
    assert_eq!(origin.ask(&cache, 1), Ok(10));
    for _ in 0..9 {
        clock.advance(110 * MS);
        assert_eq!(origin.ask(&cache, 1), Ok(10));
    }
    assert_eq!(origin.asked(), 1);
    clock.advance(10 * MS);
    assert_eq!(origin.ask(&cache, 1), Ok(10));
    assert_eq!(origin.asked(), 2);
}

#[test]
fn where_no_old_value_is_kept_every_caller_asks() {
    let clock = ManualClock::new();
    let cache = kept(&clock).build().expect("valid");
    cache.insert_with(1, 10, Lifetime::ttl(10 * SECOND).tag("a"));
    cache.insert(2, 20);
    let origin = Down::default();
    clock.advance(10 * SECOND);
    assert_eq!(origin.ask(&cache, 1), Ok(10));
    cache.invalidate_tag("a");
    assert!(origin.ask(&cache, 1).is_err());
    assert!(origin.ask(&cache, 1).is_err());
    assert_eq!(origin.asked(), 3);
    // The hour is over before the back-off.
    clock.advance(HOUR - 500 * MS);
    assert_eq!(origin.ask(&cache, 2), Ok(20));
    clock.advance(500 * MS);
    assert!(origin.ask(&cache, 2).is_err());
    assert_eq!(origin.asked(), 5);
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

#[test]
fn a_failing_refresher_is_asked_once_in_a_backoff() {
    let clock = ManualClock::new();
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    let cache = kept(&clock)
        .refresh_after(0.9)
        .refresh_with(move |_: &u64| {
            counted.fetch_add(1, SeqCst);
            Err::<u64, _>(Failure(500))
        })
        .build()
        .expect("valid");
    cache.insert(1, 10);
    clock.advance(9 * SECOND);
    for _ in 0..9 {
        assert_eq!(cache.get(&1), Some(10));
        cache.run_refreshes(10);
        clock.advance(110 * MS);
    }
    assert_eq!(asked.load(SeqCst), 1);
}

#[test]
fn one_entry_is_kept_for_errors_as_long_as_was_said_for_it() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(1000)
        .time_to_live(10 * SECOND)
        .error_backoff(Duration::ZERO)
        .clock(clock.clone())
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    cache.insert(1, 10);
    cache.insert_with(2, 20, Lifetime::configured().stale_for(60 * SECOND));
    cache.insert_with(3, 30, Lifetime::ttl(SECOND).stale_for(60 * SECOND));
    assert_eq!(cache.ttl(&2), Ttl::Left(10 * SECOND));
    assert!(cache.expire(&3, 10 * SECOND, Condition::Always));
    assert_eq!(cache.update(&3, |old| old + 1), Some(31));
    clock.advance(10 * SECOND - MS);
    assert_eq!(
        [1, 2, 3].map(|key| cache.get(&key)),
        [Some(10), Some(20), Some(31)]
    );
    clock.advance(MS);
    cache.advance(cache.now(), 100);
    assert_eq!(cache.len(), 2);
    assert_eq!([1, 2, 3].map(|key| cache.get(&key)), [None; 3]);
    assert_eq!(cache.iter().count(), 0);
    assert!(!cache.expire(&2, SECOND, Condition::Always), "it is over");
    let origin = Down::default();
    assert!(origin.ask(&cache, 1).is_err());
    clock.advance(60 * SECOND - MS);
    assert_eq!(origin.ask(&cache, 2), Ok(20));
    assert_eq!(origin.ask(&cache, 3), Ok(31));
    clock.advance(MS);
    assert!(origin.ask(&cache, 2).is_err());
    assert!(origin.ask(&cache, 3).is_err());
    assert_eq!(cache.advance(cache.now(), 100).expired, 2);
    cache.validate();
}

#[test]
fn one_entry_may_be_kept_longer_or_shorter_than_the_others_or_not_at_all() {
    let clock = ManualClock::new();
    let cache = kept(&clock).build().expect("valid");
    cache.insert_with(1, 10, Lifetime::configured().stale_for(Duration::ZERO));
    cache.insert_with(2, 20, Lifetime::configured().stale_for(2 * HOUR));
    cache.insert_with(3, 30, Lifetime::configured().stale_for(SECOND));
    clock.advance(10 * SECOND);
    let origin = Down::default();
    assert!(origin.ask(&cache, 1).is_err());
    assert_eq!(origin.ask(&cache, 3), Ok(30));
    clock.advance(SECOND);
    assert!(origin.ask(&cache, 3).is_err());
    clock.advance(2 * HOUR - SECOND - MS);
    assert_eq!(origin.ask(&cache, 2), Ok(20));
}

#[test]
fn a_refreshed_value_is_kept_as_long_as_the_old_one_would_have_been() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(1000)
        .time_to_live(10 * SECOND)
        .refresh_after(0.5)
        .refresh_with(|_: &u64| Ok::<_, Failure>(11))
        .clock(clock.clone())
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    cache.insert_with(1, 10, Lifetime::configured().stale_for(HOUR));
    clock.advance(6 * SECOND);
    cache.get(&1);
    assert_eq!(cache.run_refreshes(10), 1);
    clock.advance(HOUR);
    assert_eq!(Down::default().ask(&cache, 1), Ok(11));
}

#[cfg(feature = "serde")]
#[test]
fn a_restored_entry_is_kept_as_long_after_its_end_as_was_said() {
    let clock = ManualClock::new();
    let build = || kept(&clock).build().expect("valid");
    let cache = build();
    cache.insert_with(1, 10, Lifetime::configured().stale_for(2 * HOUR));
    clock.advance(SECOND);
    let restored = build();
    restored.restore(cache.snapshot()).expect("this version's");
    assert_eq!(restored.ttl(&1), Ttl::Left(9 * SECOND));
    clock.advance(9 * SECOND);
    assert_eq!(restored.get(&1), None);
    clock.advance(2 * HOUR - MS);
    assert_eq!(Down::default().ask(&restored, 1), Ok(10));
}

/// Polls a future that is to be done.
fn done<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing is left to wait for"),
    }
}

/// `Cache-Control: max-age=0`: those who wait for the answer share it, and nobody after them gets
/// it.
#[test]
fn an_answer_that_may_not_be_used_again_reaches_those_who_wait_and_is_not_stored() {
    let clock = ManualClock::new();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&heard);
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(1)
        .time_to_live(10 * SECOND)
        .eviction_listener(move |removal: tidewheel::Removal<u64, u64>| {
            ear.lock()
                .expect("nobody panics")
                .push((removal.key, removal.cause));
        })
        .clock(clock.clone())
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    cache.insert(2, 20);
    let (send, answer) = std::sync::mpsc::channel();
    let slow = std::future::poll_fn(move |_| match answer.try_recv() {
        Ok(value) => Poll::Ready(Loaded::new(value, Lifetime::ttl(Duration::ZERO))),
        Err(_) => Poll::Pending,
    });
    let mut leads = pin!(cache.fetch(1).load_with_async(slow));
    let mut waits = pin!(cache.get_or_load_async(1, async { unreachable!("it waits") }));
    let mut context = Context::from_waker(Waker::noop());
    assert!(leads.as_mut().poll(&mut context).is_pending());
    assert!(waits.as_mut().poll(&mut context).is_pending());
    send.send(10).expect("it is awaited");
    assert_eq!((done(leads).value, done(waits)), (10, 10));

    assert_eq!((cache.get(&1), cache.len()), (None, 1));
    assert_eq!(cache.get(&2), Some(20), "nobody made room for it");
    assert_eq!(
        cache
            .fetch(1)
            .load_with(|| Loaded::new(11, Lifetime::ttl(Duration::ZERO)))
            .value,
        11
    );
    // In place of an old value too.
    cache.insert_with_ttl(2, 21, Duration::ZERO);
    assert!(cache.is_empty());
    cache.advance(cache.now(), 100);
    let heard = std::mem::take(&mut *heard.lock().expect("nobody panics"));
    use RemovalCause::{Expired, Replaced};
    assert_eq!(
        heard,
        [(1, Expired), (1, Expired), (2, Replaced), (2, Expired)]
    );
    let stats = cache.stats();
    assert_eq!((stats.expirations, stats.evictions), (3, 0));
    cache.validate();
}

#[test]
fn an_answer_without_a_life_of_its_own_may_be_kept_for_errors() {
    let clock = ManualClock::new();
    let cache = kept(&clock).build().expect("valid");
    let lifetime = || Lifetime::ttl(Duration::ZERO).stale_for(60 * SECOND);
    for number in [10, 11] {
        let answer = cache
            .fetch(1)
            .load_with(|| Ok::<_, Failure>(Loaded::new(number, lifetime())))
            .value;
        assert_eq!(answer, Ok(number), "asked for each time");
    }
    let origin = Down::default();
    assert_eq!(origin.ask(&cache, 1), Ok(11));
    assert_eq!(origin.ask(&cache, 1), Ok(11));
    assert_eq!(origin.asked(), 1);
    clock.advance(60 * SECOND);
    assert!(origin.ask(&cache, 1).is_err());
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
