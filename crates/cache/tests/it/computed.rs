//! `try_compute`: a closure that may fail, and what it has made of a key.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use tidewheel::{Cache, Compute, Computed, Lifetime, Loaded, ManualClock};

use crate::loading::{Failure, Valid, manual, until};

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

/// Writers that wait for the closure go on.
#[test]
fn a_closure_that_fails_or_panics_opens_the_key() {
    let cache: &Numbers = &manual(&ManualClock::new()).valid();
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
