//! `compute_async`: closures of one key take turns, and no other writer waits for them.

use std::cell::RefCell;
use std::future::{Future, pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;

use tidewheel::{Cache, Compute, Computed, ManualClock};

use crate::loading::{Valid, manual, unreached};
use crate::manual_poll::{Alarm, block_on, flagged, poll};

type Write = fn(&Cache<u64, u64>);
type Change<'a> = Pin<Box<dyn Future<Output = Option<u64>> + 'a>>;

fn cache() -> Cache<u64, u64> {
    manual(&ManualClock::new()).valid()
}

fn add(old: Option<u64>) -> Compute<u64> {
    match old {
        Some(old) => Compute::Update(old + 1),
        None => Compute::Put(1.into()),
    }
}

#[test]
fn closures_take_turns_in_the_order_in_which_they_came() {
    let cache = cache();
    let (go, order) = (AtomicBool::new(false), RefCell::new(Vec::new()));
    let mut changes: Vec<Change<'_>> = (0..4)
        .map(|number| -> Change<'_> {
            let (go, order) = (&go, &order);
            Box::pin(cache.entry(1).compute_async(move |old| async move {
                flagged(go).await;
                order.borrow_mut().push(number);
                add(old)
            }))
        })
        .collect();
    let alarms: Vec<_> = (0..4).map(|_| Alarm::new()).collect();
    for (change, alarm) in changes.iter_mut().zip(&alarms) {
        assert!(poll(change.as_mut(), alarm).is_pending());
    }
    go.store(true, SeqCst);
    // Whoever comes out of turn goes on waiting.
    assert!(poll(changes[3].as_mut(), &alarms[3]).is_pending());
    for turn in 0..4 {
        let mut newcomer = Box::pin(cache.entry(1).compute_async(|old| ready(add(old))));
        if turn > 0 {
            assert_eq!(
                alarms[turn].woken.load(SeqCst),
                1,
                "it is number {turn}'s turn"
            );
            assert!(poll(newcomer.as_mut(), &Alarm::new()).is_pending());
        }
        drop(newcomer);
        let done = poll(changes[turn].as_mut(), &alarms[turn]);
        assert_eq!(done, Poll::Ready(Some(turn as u64 + 1)));
    }
    assert_eq!(*order.borrow(), [0, 1, 2, 3]);
    cache.validate();
}

/// A closure, and one that is a future.
#[test]
fn a_closure_that_changes_or_loads_its_own_key_panics_instead_of_waiting_for_itself() {
    let within: [Write; 8] = [
        |cache| cache.insert(1, 6),
        |cache| _ = cache.remove(&1),
        |cache| _ = cache.update(&1, |old| old + 1),
        |cache| _ = cache.entry(1).compute(|_| Compute::Keep),
        |cache| _ = block_on(cache.entry(1).compute_async(|_| ready(Compute::Keep))),
        |cache| _ = cache.invalidate_if(|_, _| true),
        |cache| {
            let (_, version) = cache.get_with_version(&1).expect("there");
            _ = cache.compare_and_set(1, version, 7);
        },
        // There: a hit. Only what is about to be supplied is waited for.
        |cache| {
            assert_eq!(cache.get_or_load(1, unreached), 5);
            assert!(cache.remove_if(&1, |_| true));
        },
    ];
    type Way = fn(&Cache<u64, u64>, Write);
    let ways: [Way; 2] = [
        |cache, call| {
            cache.update(&1, |old| {
                call(cache);
                *old
            });
        },
        |cache, call| {
            let change = cache.entry(1).compute_async(async |_| {
                call(cache);
                Compute::Keep
            });
            block_on(change);
        },
    ];
    let cache = cache();
    for (number, call) in within.into_iter().enumerate() {
        for way in ways {
            cache.insert(1, 5);
            let panic = catch_unwind(AssertUnwindSafe(|| way(&cache, call)));
            let panic = panic.expect_err("it panics");
            let said = panic.downcast_ref::<String>().expect("a message");
            let expected = "the key that it is about to supply";
            assert!(said.contains(expected), "{number}: {said}");
            // The key is free again.
            assert_eq!(cache.remove(&1), Some(5));
        }
    }
    let loads: [Write; 2] = [
        |cache| _ = cache.entry(3).or_insert_with(|| cache.get_or_load(3, || 1)),
        |cache| {
            let change = cache.entry(3).compute_async(async |_| {
                cache.get_or_load(3, || 5);
                Compute::Keep
            });
            block_on(change);
        },
    ];
    for load in loads {
        assert!(catch_unwind(AssertUnwindSafe(|| load(&cache))).is_err());
    }
    cache.validate();
}

#[test]
fn a_sync_load_on_the_thread_that_polled_the_closure_panics_instead_of_blocking_it() {
    let cache = cache();
    let mut change = Box::pin(cache.entry(1).compute_async(|_| pending::<Compute<u64>>()));
    assert!(poll(change.as_mut(), &Alarm::new()).is_pending());
    let load = catch_unwind(AssertUnwindSafe(|| cache.get_or_load(1, || 5)));
    assert!(load.is_err());
    drop(change);
    assert_eq!(cache.get_or_load(1, || 5), 5);
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
