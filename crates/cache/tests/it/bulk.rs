//! Bulk loads: one call for all that is missing, nothing twice, and nobody waits for one who waits
//! for him.

use std::cell::{Cell, RefCell};
use std::future::{Future, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;

use tidewheel::{Cache, Compute, ManualClock};

use crate::loading::{Failure, MS, Valid, by_hand, manual};
use crate::manual_poll::{Alarm, block_on, flagged, poll};

const NONE: &[u64] = &[];

type Answers<'a> = Pin<Box<dyn Future<Output = Vec<Option<u64>>> + 'a>>;

fn cache() -> Cache<u64, u64> {
    manual(&ManualClock::new()).valid()
}

/// Ten times each key.
fn tens(keys: Vec<u64>) -> Vec<(u64, u64)> {
    keys.into_iter().map(|key| (key, 10 * key)).collect()
}

/// A bulk load that waits for a flag, and notes what it was called for.
fn slow<'a>(
    cache: &'a Cache<u64, u64>,
    keys: &'a [u64],
    go: &'a AtomicBool,
    calls: &'a RefCell<Vec<Vec<u64>>>,
) -> Answers<'a> {
    Box::pin(cache.get_or_load_many_async(keys, move |missing| {
        calls.borrow_mut().push(missing.clone());
        async move {
            flagged(go).await;
            tens(missing)
        }
    }))
}

#[test]
fn one_call_loads_all_that_is_missing() {
    let cache = cache();
    cache.insert(2, 7);
    let mut calls = Vec::new();
    let answers = cache.get_or_load_many(&[3, 2, 1, 3, 2], |missing| {
        calls.push(missing.clone());
        // In an order of its own.
        tens(missing).into_iter().rev()
    });
    assert_eq!(answers, [Some(30), Some(7), Some(10), Some(30), Some(7)]);
    assert_eq!(calls, [[3, 1]]);
    assert_eq!((cache.get(&1), cache.get(&3)), (Some(10), Some(30)));
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.load_errors, stats.inserts), (2, 0, 3));

    let unreached = |_| -> Vec<(u64, u64)> { unreachable!("all are there") };
    assert_eq!(cache.get_or_load_many(&[1, 2, 3], unreached).len(), 3);
    assert_eq!(cache.get_or_load_many(NONE, unreached), []);
    assert_eq!(
        block_on(cache.get_or_load_many_async(NONE, |_| ready(unreached(vec![])))),
        []
    );
    cache.validate();
}

#[test]
fn what_the_loader_leaves_out_is_absent_and_what_nobody_asked_for_is_dropped() {
    let clock = ManualClock::new();
    let cache = manual(&clock).negative_ttl(10 * MS).valid();
    cache.insert(9, 1);
    let answers = cache.get_or_load_many(&[1, 2], |_| [(1, 10), (9, 90), (8, 80), (1, 11)]);
    assert_eq!(answers, [Some(10), None]);
    assert_eq!(
        (cache.get(&1), cache.get(&8), cache.get(&9)),
        (Some(10), None, Some(1))
    );
    // The absence is remembered, for those to whom it is an answer.
    assert_eq!(cache.optionally_get_or_load(2, || Some(20)), None);
    assert_eq!(cache.get_or_load_many(&[2], tens), [None]);
    assert_eq!(cache.get_or_load(2, || 20), 20);
    cache.validate();
}

#[test]
fn an_error_is_that_of_each_missing_key() {
    let clock = ManualClock::new();
    let cache = manual(&clock)
        .stale_on_error(50 * MS)
        .negative_ttl(10 * MS)
        .valid();
    cache.insert(1, 5);
    clock.advance(100 * MS);
    cache.insert(2, 6);
    let mut calls = 0;
    let mut ask = || {
        cache.try_get_or_load_many(&[1, 2, 3, 3], |_| {
            calls += 1;
            Err::<Vec<(u64, u64)>, _>(Failure(calls))
        })
    };
    let failed = || Err(Arc::new(Failure(1)));
    assert_eq!(ask(), [Ok(Some(5)), Ok(Some(6)), failed(), failed()]);
    assert_eq!(
        ask(),
        [Ok(Some(5)), Ok(Some(6)), failed(), failed()],
        "remembered"
    );
    assert_eq!(calls, 1);
    assert_eq!(cache.stats().load_errors, 2);
    let tens = async |missing| Ok::<_, Failure>(tens(missing));
    clock.advance(10 * MS);
    let answers = block_on(cache.try_get_or_load_many_async(&[4, 3], tens));
    assert_eq!(answers, [Ok(Some(40)), Ok(Some(30))]);
    cache.validate();
}

#[test]
fn a_panic_leaves_the_keys_to_others_and_keeps_what_was_said_until_then() {
    let cache = cache();
    let panics = || -> (u64, u64) { std::panic::resume_unwind(Box::new("loader")) };
    let load = |_: Vec<u64>| (0..3_u64).map(|at| if at == 2 { panics() } else { (at, at + 40) });
    let bulk = catch_unwind(AssertUnwindSafe(|| {
        cache.get_or_load_many(&[0, 1, 2, 3], load)
    }));
    assert!(bulk.is_err());
    assert_eq!((cache.get(&0), cache.get(&1)), (Some(40), Some(41)));
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.load_errors), (4, 2));
    assert_eq!(cache.get_or_load_many(&[2, 3], tens), [Some(20), Some(30)]);
    let bulk = cache.get_or_load_many_async(&[5, 6], async |_| -> Vec<(u64, u64)> {
        std::panic::resume_unwind(Box::new("future"))
    });
    assert!(catch_unwind(AssertUnwindSafe(|| block_on(bulk))).is_err());
    assert_eq!(cache.get_or_load_many(&[5, 6], tens), [Some(50), Some(60)]);
    cache.validate();
}

#[test]
fn all_that_another_one_leaves_is_loaded_with_one_call() {
    let cache = cache();
    let (never, now) = (AtomicBool::new(false), AtomicBool::new(true));
    let calls = RefCell::new(Vec::new());
    let mut first = slow(&cache, &[1, 2, 3], &never, &calls);
    let mut second = slow(&cache, &[1, 2, 3], &now, &calls);
    let alarms = [Alarm::new(), Alarm::new()];
    assert!(poll(first.as_mut(), &alarms[0]).is_pending());
    assert!(poll(second.as_mut(), &alarms[1]).is_pending());
    drop(first);
    let expected = vec![Some(10), Some(20), Some(30)];
    assert_eq!(poll(second.as_mut(), &alarms[1]), Poll::Ready(expected));
    assert_eq!(*calls.borrow(), [[1, 2, 3], [1, 2, 3]]);
}

#[test]
fn a_loader_that_asks_for_one_of_its_keys_panics_instead_of_waiting_for_itself() {
    let cache = cache();
    let bulk = || {
        cache.get_or_load_many(&[1, 2], |missing| {
            cache.get_or_load_many(&[3, 2], tens);
            tens(missing)
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(bulk)).is_err());
    let other = cache.get_or_load_many(&[1, 2], |missing| {
        assert_eq!(cache.get_or_load_many(&[3, 4], tens), [Some(30), Some(40)]);
        tens(missing)
    });
    assert_eq!(other, [Some(10), Some(20)]);
    cache.validate();
}

#[test]
fn bulk_loads_and_closures_are_futures_that_may_move() {
    fn moves<F: Future + Send>(_: &F) {}
    let cache = cache();
    moves(&cache.get_or_load_many_async(&[1], async |keys| tens(keys)));
    moves(&cache.entry(1).compute_async(async |_| Compute::Keep));
    moves(&cache.fetch_by_ref(&1).load_async(ready(1)));
}

/// A panicking `Drop` of a value, while the loader's panic unwinds, would end the process.
#[test]
fn answers_are_dropped_quietly_when_the_loader_panics() {
    #[derive(Clone)]
    struct Prickly;
    impl Drop for Prickly {
        fn drop(&mut self) {
            if ARMED.with(Cell::get) {
                std::panic::resume_unwind(Box::new("drop"));
            }
        }
    }
    thread_local! {
        static ARMED: Cell<bool> = const { Cell::new(false) };
    }
    let cache: Cache<u64, Prickly> = by_hand(&ManualClock::new()).valid();
    cache.insert(1, Prickly);
    cache.insert(2, Prickly);
    let bulk = || {
        cache.get_or_load_many(&[1, 2, 3], |_| -> Vec<(u64, Prickly)> {
            ARMED.with(|armed| armed.set(true));
            std::panic::resume_unwind(Box::new("loader"))
        })
    };
    let panic = catch_unwind(AssertUnwindSafe(bulk))
        .err()
        .expect("it panics");
    ARMED.with(|armed| armed.set(false));
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"loader"));
    assert_eq!(cache.stats().drop_panics, 2);
}
