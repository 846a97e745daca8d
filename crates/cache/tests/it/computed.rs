//! `try_compute`: a closure that may fail, and what it has made of a key.

use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use tidewheel::{Cache, Compute, Computed, Lifetime, Loaded, ManualClock};

use crate::loading::{Failure, manual, until};
use crate::manual_poll::block_on;

type Numbers = Cache<u64, u64>;
type Said = Result<Compute<u64>, Failure>;

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
