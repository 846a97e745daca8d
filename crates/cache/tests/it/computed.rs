//! `try_compute`: a closure that may fail, and what it has made of a key.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;

use tidewheel::{Cache, Compute, Computed, Lifetime, Loaded, ManualClock, RemovalCause, Ttl};

use crate::loading::{Failure, MS, manual, until};
use crate::manual_poll::{Alarm, block_on, flagged, poll};

type Numbers = Cache<u64, u64>;
type Said = Result<Compute<u64>, Failure>;

/// Both forms of one call.
fn each_form(
    test: impl Fn(&ManualClock, &Numbers, &dyn Fn(Said) -> Result<Computed<u64>, Failure>),
) {
    for is_async in [false, true] {
        let clock = ManualClock::new();
        let cache = manual(&clock).build().expect("valid");
        test(&clock, &cache, &|said| {
            let said = Cell::new(Some(said));
            let say = || said.take().expect("called once");
            let entry = cache.entry_by_ref(&1);
            match is_async {
                false => entry.try_compute(|_| say()),
                true => block_on(entry.try_compute_async(|_| ready(say()))),
            }
        });
        cache.run_due();
        cache.validate();
    }
}

/// A removed or replaced value could only be had by a captured variable.
#[test]
fn a_closure_is_handed_what_it_has_removed_or_replaced() {
    each_form(|clock, cache, compute| {
        assert_eq!(compute(Ok(Compute::Keep)), Ok(Computed::Absent));
        assert_eq!(compute(Ok(Compute::Remove)), Ok(Computed::Absent));
        let put = |value: u64| Ok(Compute::Put(value.into()));
        assert_eq!(compute(put(5)), Ok(Computed::Inserted(5)));
        assert_eq!(compute(Ok(Compute::Keep)), Ok(Computed::Kept(5)));
        assert_eq!(compute(put(6)), Ok(Computed::Replaced { old: 5, new: 6 }));
        let update = compute(Ok(Compute::Update(7)));
        assert_eq!(update, Ok(Computed::Replaced { old: 6, new: 7 }));
        assert_eq!(compute(Ok(Compute::Remove)), Ok(Computed::Removed(7)));
        assert_eq!(compute(Ok(Compute::Update(8))), Ok(Computed::Inserted(8)));
        clock.advance(100 * MS);
        // It has ended; whether it was removed yet makes no difference.
        assert_eq!(compute(Ok(Compute::Remove)), Ok(Computed::Absent));
        assert_eq!(compute(put(9)), Ok(Computed::Inserted(9)));
        assert_eq!(cache.ttl(&1), Ttl::Left(100 * MS));
    });
}

#[test]
fn an_error_of_a_closure_changes_nothing() {
    each_form(|clock, cache, compute| {
        assert_eq!(compute(Err(Failure(1))), Err(Failure(1)));
        assert_eq!(cache.len(), 0);
        cache.insert_with(1, 5, Lifetime::configured().tag("a"));
        let version = cache.version(&1);
        clock.advance(10 * MS);
        assert_eq!(compute(Err(Failure(2))), Err(Failure(2)));
        assert_eq!((cache.peek(&1), cache.version(&1)), (Some(5), version));
        assert_eq!(
            (cache.ttl(&1), cache.count_tag("a")),
            (Ttl::Left(90 * MS), 1)
        );
        // Nobody waits for it.
        cache.insert(1, 6);
        let kept = compute(Ok(Compute::Keep));
        assert_eq!(kept.map(Computed::into_value), Ok(Some(6)));
    });
}

#[test]
fn what_a_closure_has_made_of_a_key_has_two_halves() {
    let halves = |computed: Computed<u64>| (computed.clone().into_value(), computed.into_old());
    assert_eq!(halves(Computed::Absent), (None, None));
    assert_eq!(halves(Computed::Kept(1)), (Some(1), None));
    assert_eq!(halves(Computed::Inserted(1)), (Some(1), None));
    assert_eq!(
        halves(Computed::Replaced { old: 1, new: 2 }),
        (Some(2), Some(1))
    );
    assert_eq!(halves(Computed::Removed(1)), (None, Some(1)));
    assert_eq!(halves(Computed::NotStored(1)), (None, None));
}

/// A value that left while the closure ran was not removed by it, and nothing was replaced.
#[test]
fn what_leaves_by_itself_while_a_closure_runs_is_not_its_doing() {
    let clock = ManualClock::new();
    let causes = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&causes);
    let cache = manual(&clock)
        .weigher(|_, value| u32::try_from(*value).expect("small"))
        .eviction_listener(move |removal| told.lock().expect("whole").push(removal.cause))
        .build()
        .expect("valid");
    let compute = |wanted: Compute<u64>, meanwhile: &dyn Fn()| {
        cache.insert_with(1, 5, Lifetime::configured().tag("a"));
        let computed = cache.entry(1).try_compute(|old| {
            assert_eq!(old, Some(&5));
            meanwhile();
            Ok::<_, Infallible>(wanted)
        });
        let Ok(computed) = computed;
        computed
    };
    let ends = || {
        clock.advance(100 * MS);
    };
    let invalidated = || assert!(cache.invalidate_tag("a"));
    assert_eq!(compute(Compute::Remove, &ends), Computed::Absent);
    assert_eq!(compute(Compute::Remove, &invalidated), Computed::Absent);
    assert_eq!(compute(Compute::Update(6), &ends), Computed::NotStored(6));
    let put = || Compute::Put(6.into());
    assert_eq!(compute(put(), &invalidated), Computed::NotStored(6));
    let invalidated_and_swept = || {
        invalidated();
        cache.advance(cache.now(), u32::MAX);
    };
    assert_eq!(
        compute(put(), &invalidated_and_swept),
        Computed::NotStored(6)
    );
    assert_eq!(compute(put(), &ends), Computed::Inserted(6));
    // Heavier than the whole capacity: the old one goes.
    let heavy = Compute::Put(2000.into());
    assert_eq!(compute(heavy, &|| {}), Computed::NotStored(2000));
    assert_eq!(cache.peek(&1), None);
    cache.run_due();
    let causes = causes.lock().expect("whole");
    assert!(!causes.contains(&RemovalCause::Removed), "{causes:?}");
    cache.validate();
}

/// The old value of the last run is told, not of the first.
#[test]
fn an_async_closure_that_runs_again_is_told_of_its_last_run() {
    let cache = manual(&ManualClock::new()).build().expect("valid");
    cache.insert(1, 10);
    let go = AtomicBool::new(false);
    let seen = RefCell::new(Vec::new());
    let mut taken = Box::pin(cache.entry(1).try_compute_async(|old| {
        seen.borrow_mut().push(old);
        async {
            flagged(&go).await;
            Ok::<_, Failure>(Compute::Remove)
        }
    }));
    let alarm = Alarm::new();
    assert!(poll(taken.as_mut(), &alarm).is_pending());
    cache.insert(1, 11);
    go.store(true, SeqCst);
    let Poll::Ready(computed) = poll(taken.as_mut(), &alarm) else {
        panic!("pending");
    };
    assert_eq!(computed, Ok(Computed::Removed(11)));
    assert_eq!(*seen.borrow(), [Some(10), Some(11)]);
}

/// The next closure has its turn, and writers do not wait.
#[test]
fn an_async_closure_that_fails_hands_its_turn_on() {
    let cache = manual(&ManualClock::new()).build().expect("valid");
    let go = AtomicBool::new(false);
    let mut fails = Box::pin(cache.entry(1).try_compute_async(async |_| {
        flagged(&go).await;
        Err(Failure(1))
    }));
    let put = |_| ready(Ok::<_, Failure>(Compute::Put(7.into())));
    let mut waits = Box::pin(cache.entry(1).try_compute_async(put));
    let alarm = Alarm::new();
    assert!(poll(fails.as_mut(), &alarm).is_pending());
    assert!(poll(waits.as_mut(), &alarm).is_pending());
    go.store(true, SeqCst);
    assert_eq!(poll(fails.as_mut(), &alarm), Poll::Ready(Err(Failure(1))));
    let inserted = Poll::Ready(Ok(Computed::Inserted(7)));
    assert_eq!(poll(waits.as_mut(), &alarm), inserted);
}

/// Ten thousand seats are each given to one of those who ask.
#[test]
fn what_is_taken_by_many_threads_is_taken_once() {
    let cache: &Numbers = &manual(&ManualClock::new()).build().expect("valid");
    for round in 0..200 {
        cache.insert_with(1, round, Lifetime::forever());
        let taken: usize = thread::scope(|scope| {
            let takes: Vec<_> = (0..4)
                .map(|thread| {
                    scope.spawn(move || {
                        let take = |_: Option<&u64>| Ok::<_, Failure>(Compute::Remove);
                        let entry = cache.entry(1);
                        let computed = match thread % 2 {
                            0 => entry.try_compute(take),
                            _ => block_on(entry.try_compute_async(|old| ready(take(old.as_ref())))),
                        };
                        usize::from(computed == Ok(Computed::Removed(round)))
                    })
                })
                .collect();
            takes
                .into_iter()
                .map(|take| take.join().expect("took"))
                .sum()
        });
        assert_eq!(taken, 1, "round {round}");
    }
}

/// Writers that wait for the closure go on.
#[test]
fn a_closure_that_fails_or_panics_opens_the_key() {
    let cache: &Numbers = &manual(&ManualClock::new()).build().expect("valid");
    for panics in [false, true] {
        let (begun, go) = (&AtomicBool::new(false), &AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(move || {
                let change = |_: Option<&u64>| -> Said {
                    begun.store(true, SeqCst);
                    until("the writer has come", || go.load(SeqCst));
                    assert!(!panics, "the closure's");
                    Err(Failure(1))
                };
                let compute = || cache.entry(1).try_compute(change);
                let computed = catch_unwind(AssertUnwindSafe(compute));
                assert_eq!(computed.is_err(), panics);
            });
            until("the closure runs", || begun.load(SeqCst));
            let writer = scope.spawn(move || cache.insert(1, 6));
            go.store(true, SeqCst);
            writer.join().expect("goes on");
        });
        assert_eq!(cache.remove(&1), Some(6));
    }
    let loaded = Loaded::new(7, Lifetime::forever());
    let put = cache
        .entry(1)
        .try_compute(|_| Ok::<_, Failure>(Compute::Put(loaded)));
    assert_eq!(put, Ok(Computed::Inserted(7)));
}
