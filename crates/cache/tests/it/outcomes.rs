//! Loads tell where their answers come from.

use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;
use std::thread;

use tidewheel::{Fetched, Loaded, ManualClock, Outcome};

use crate::loading::{manual, unreached, until};
use crate::manual_poll::{Alarm, flagged, poll};

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
    let cache = manual(&ManualClock::new()).build().expect("valid");
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
    let cache = manual(&ManualClock::new()).build().expect("valid");
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

#[test]
fn outcomes_are_words_for_a_header() {
    let words = [
        (Outcome::Hit, "HIT"),
        (Outcome::Stale, "STALE"),
        (Outcome::StaleOnError, "STALE-ON-ERROR"),
        (Outcome::Loaded, "MISS"),
        (Outcome::Joined, "JOINED"),
        (Outcome::Negative, "NEGATIVE"),
    ];
    for (outcome, word) in words {
        assert_eq!(outcome.to_string(), word);
    }
}
