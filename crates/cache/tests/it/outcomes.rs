//! Loads tell where their answers come from.

use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tidewheel::{Fetched, Loaded, ManualClock, Outcome};

use crate::loading::{Failure, MS, Valid, manual, unreached, until};
use crate::manual_poll::{Alarm, flagged, poll};

const SECOND: Duration = Duration::from_secs(1);

fn told<T, E>(fetched: Fetched<T, E>) -> (T, Outcome) {
    (fetched.value, fetched.outcome)
}

fn ready_now<T, E>(poll: Poll<Fetched<T, E>>) -> (T, Outcome) {
    match poll {
        Poll::Ready(fetched) => told(fetched),
        Poll::Pending => panic!("pending"),
    }
}

#[test]
fn those_who_wait_have_joined() {
    let cache = manual(&ManualClock::new()).valid();
    let go = AtomicBool::new(false);
    let mut leader = Box::pin(cache.fetch(1).load_async(async {
        flagged(&go).await;
        5
    }));
    let mut task = Box::pin(cache.fetch(1).load_async(ready(6)));
    let alarm = Alarm::new();
    assert!(poll(leader.as_mut(), &alarm).is_pending());
    assert!(poll(task.as_mut(), &alarm).is_pending());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| told(cache.fetch(1).load(unreached)));
        until("the thread waits", || cache.stats().misses == 3);
        go.store(true, SeqCst);
        assert_eq!(
            ready_now(poll(leader.as_mut(), &alarm)),
            (5, Outcome::Loaded)
        );
        assert_eq!(ready_now(poll(task.as_mut(), &alarm)), (5, Outcome::Joined));
        assert_eq!(waiting.join().expect("answered"), (5, Outcome::Joined));
        let stats = cache.stats();
        assert_eq!((stats.misses, stats.loads, stats.joined), (3, 1, 2));
    });
}

/// Those who waited got it too.
#[test]
fn a_private_value_is_for_the_one_alone_who_has_loaded_it() {
    let cache = manual(&ManualClock::new()).valid();
    cache.insert(1, 4);
    cache.invalidate(&1);
    let go = AtomicBool::new(false);
    let mut leader = Box::pin(cache.fetch(1).load_with_async(async {
        flagged(&go).await;
        Loaded::private(5)
    }));
    let joined = |value: u64| cache.fetch(1).load_with_async(ready(Loaded::from(value)));
    let (mut second, mut third) = (Box::pin(joined(6)), Box::pin(joined(7)));
    let alarm = Alarm::new();
    assert!(poll(leader.as_mut(), &alarm).is_pending());
    assert!(poll(second.as_mut(), &alarm).is_pending());
    assert!(poll(third.as_mut(), &alarm).is_pending());
    go.store(true, SeqCst);
    let loaded = |value| (value, Outcome::Loaded);
    assert_eq!(ready_now(poll(leader.as_mut(), &alarm)), loaded(5));
    assert_eq!(ready_now(poll(third.as_mut(), &alarm)), loaded(7));
    assert_eq!(ready_now(poll(second.as_mut(), &alarm)), loaded(6));
    assert_eq!(cache.peek(&1), None);
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.joined, stats.inserts), (3, 0, 1));
    assert_eq!(told(cache.fetch(1).load(|| 8)), loaded(8));
    assert_eq!(told(cache.fetch(1).load(unreached)), (8, Outcome::Hit));
}

/// Nothing told old values in place of errors from those past their soft deadline.
#[test]
fn each_outcome_moves_its_counters() {
    let clock = ManualClock::new();
    let cache = manual(&clock)
        .refresh_after(0.5)
        .stale_on_error(SECOND)
        .error_backoff(SECOND)
        .negative_ttl(SECOND)
        .valid();
    let counted = || {
        let stats = cache.stats();
        let load = (stats.loads, stats.load_errors);
        let stale = (stats.stale_hits, stats.stale_on_error);
        ((stats.hits, stats.misses), stale, stats.negative_hits, load)
    };
    let ask = |loaded: Result<Option<u64>, Failure>| {
        let loaded = loaded.map(|value| value.map(Loaded::from));
        cache.fetch(1).load_with(|| loaded).outcome
    };
    let fails = || ask(Err(Failure(1)));
    assert_eq!(ask(Ok(Some(5))), Outcome::Loaded);
    assert_eq!(counted(), ((0, 1), (0, 0), 0, (1, 0)));
    assert_eq!(fails(), Outcome::Hit);
    assert_eq!(counted(), ((1, 1), (0, 0), 0, (1, 0)));
    clock.advance(50 * MS);
    assert_eq!(fails(), Outcome::StaleOnError);
    assert_eq!(counted(), ((1, 2), (1, 1), 0, (2, 1)));
    assert_eq!(fails(), Outcome::Stale);
    assert_eq!(counted(), ((2, 2), (2, 1), 0, (2, 1)));
    clock.advance(50 * MS);
    assert_eq!(fails(), Outcome::StaleOnError, "without a load");
    assert_eq!(counted(), ((2, 3), (3, 2), 0, (2, 1)));
    cache.invalidate(&1);
    assert_eq!(ask(Ok(None)), Outcome::Loaded);
    assert_eq!(fails(), Outcome::Negative);
    assert_eq!(counted(), ((2, 5), (3, 2), 1, (3, 1)));
    let line = cache.stats().to_string();
    let part = "7 lookups, 28.6 % hits, 3 stale, 1 negative, 0 joined; ";
    assert!(line.contains(part), "{line}");
}
