//! Loads: one for all who ask, who takes over, what overtakes them.

use std::future::{pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::thread;

use tidewheel::{Cache, Loaded, ManualClock};

use crate::loading::{Failure, Valid, manual, unreached, until};
use crate::manual_poll::{Alarm, block_on, flagged, poll};

fn cache() -> Cache<u64, u64> {
    manual(&ManualClock::new()).valid()
}

#[test]
fn a_loader_that_asks_for_its_own_key_panics_instead_of_waiting_for_itself() {
    let cache = cache();
    let message = |result: thread::Result<u64>| {
        let panic = result.expect_err("must panic");
        *panic.downcast::<String>().expect("a message")
    };
    let sync = catch_unwind(AssertUnwindSafe(|| {
        cache.get_or_load(1, || cache.get_or_load(1, || 5_u64))
    }));
    assert!(message(sync).contains("the key that it is about to supply"));
    let nested = catch_unwind(AssertUnwindSafe(|| {
        block_on(cache.get_or_load_async(1, cache.get_or_load_async(1, ready(5_u64))))
    }));
    assert!(message(nested).contains("the key that it is about to supply"));
    // Another key is no trouble, and nothing is left behind.
    assert_eq!(cache.get_or_load(1, || cache.get_or_load(2, || 6_u64)), 6);
}

/// The thread waited for ever, because only it could have polled the other load.
#[test]
fn a_load_that_waits_for_a_suspended_one_of_its_own_thread_panics_instead_of_waiting_for_ever() {
    let (say, heard) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let cache = cache();
        let go = AtomicBool::new(false);
        let alarm = Alarm::new();
        let mut suspended = Box::pin(cache.get_or_load_async(1, async {
            flagged(&go).await;
            10_u64
        }));
        assert!(poll(suspended.as_mut(), &alarm).is_pending());
        let attempts: [fn(&Cache<u64, u64>); 3] = [
            |cache| _ = cache.get_or_load(1, || 11_u64),
            |cache| _ = cache.try_get_or_load(1, || Ok::<u64, Failure>(11)),
            |cache| _ = cache.optionally_get_or_load(1, || Some(11_u64)),
        ];
        for attempt in attempts {
            let panic = catch_unwind(AssertUnwindSafe(|| attempt(&cache)));
            let panic = panic.expect_err("nobody would ever wake it");
            let message = panic.downcast::<String>().expect("a message");
            assert!(message.contains("get_or_load_async"), "{message}");
        }
        // Other keys are no trouble, nor is the suspended load, nor another thread that waits for
        // it.
        assert_eq!(cache.get_or_load(2, || 20_u64), 20);
        let entered = AtomicUsize::new(0);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                entered.fetch_add(1, SeqCst);
                cache.get_or_load(1, unreached)
            });
            until("it waits, or is about to", || entered.load(SeqCst) == 1);
            go.store(true, SeqCst);
            assert_eq!(poll(suspended.as_mut(), &alarm), Poll::Ready(10));
            assert_eq!(waiter.join().expect("no panic"), 10);
        });
        say.send(()).expect("the test waits");
    });
    let ended = heard.recv_timeout(std::time::Duration::from_secs(20));
    assert_eq!(ended, Ok(()), "it waits for ever, or has panicked");
}

/// If another thread has polled the suspended load since, that thread goes on with it.
#[test]
fn a_load_waits_for_a_suspended_one_that_has_moved_to_another_thread() {
    let cache = cache();
    let go = AtomicBool::new(false);
    let moved = AtomicBool::new(false);
    let mut suspended = Box::pin(cache.get_or_load_async(1, async {
        flagged(&go).await;
        10_u64
    }));
    let alarm = Alarm::new();
    assert!(poll(suspended.as_mut(), &alarm).is_pending());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut suspended = suspended;
            assert!(poll(suspended.as_mut(), &Alarm::new()).is_pending());
            moved.store(true, SeqCst);
            until("the flag is set", || go.load(SeqCst));
            assert!(poll(suspended.as_mut(), &Alarm::new()).is_ready());
        });
        until("it has moved", || moved.load(SeqCst));
        scope.spawn(|| go.store(true, SeqCst));
        assert_eq!(cache.get_or_load(1, || 10_u64), 10);
    });
}

#[test]
fn a_load_goes_on_when_the_cache_is_closed_and_is_not_stored() {
    let cache = cache();
    let value = cache.get_or_load(1, || {
        cache.close();
        10_u64
    });
    assert_eq!((value, cache.len()), (10, 0));
    assert_eq!(cache.get_or_load(1, || 11_u64), 11);
    assert_eq!(cache.len(), 0);
}

/// Nobody can tell it from one that is polled later. Who comes after the next write of the key has
/// nothing to do with it.
#[test]
fn a_leader_that_is_leaked_keeps_those_who_wait_and_nobody_who_comes_after_a_write() {
    let cache = cache();
    let alarm = Alarm::new();
    {
        let mut leaked = Box::pin(cache.get_or_load_async(1, pending()));
        assert!(poll(leaked.as_mut(), &alarm).is_pending());
        // As if leaked: neither polled nor dropped, until the test is over.
        let mut waits = Box::pin(cache.get_or_load_async(1, ready(7)));
        assert!(poll(waits.as_mut(), &alarm).is_pending());
        cache.insert(1, 5);
        assert!(poll(waits.as_mut(), &alarm).is_pending());
        assert_eq!(cache.get_or_load(1, unreached), 5);
        assert_eq!(cache.remove(&1), Some(5));
        assert_eq!(cache.get_or_load(1, || 8), 8);
        drop(waits);
        assert_eq!(cache.get(&1), Some(8));
        cache.validate();
        cache.close();
    }
    cache.validate();
}

/// An absence or an error is the answer of those who ask alike; the others load themselves.
#[test]
fn what_ends_a_load_answers_those_who_ask_alike() {
    for fails in [false, true] {
        let cache = cache();
        let go = AtomicBool::new(false);
        let mut leader = Box::pin(cache.fetch(1).load_with_async(async {
            flagged(&go).await;
            if fails {
                Err(Failure(1))
            } else {
                Ok(None::<Loaded<u64>>)
            }
        }));
        let unpolled = poll_fn(|_| -> Poll<Option<u64>> { unreachable!("it is shared") });
        let failing = poll_fn(|_| -> Poll<Result<u64, Failure>> { unreachable!("it is shared") });
        let mut absent = Box::pin(cache.optionally_get_or_load_async(1, unpolled));
        let mut error = Box::pin(cache.try_get_or_load_async(1, failing));
        let mut other = Box::pin(cache.try_get_or_load_async(1, ready(Err("mine"))));
        let mut plain = Box::pin(cache.get_or_load_async(1, ready(6_u64)));
        let alarm = Alarm::new();
        assert!(poll(leader.as_mut(), &alarm).is_pending());
        assert!(poll(other.as_mut(), &alarm).is_pending());
        assert!(poll(plain.as_mut(), &alarm).is_pending());
        if fails {
            assert!(poll(error.as_mut(), &alarm).is_pending());
        } else {
            assert!(poll(absent.as_mut(), &alarm).is_pending());
        }
        go.store(true, SeqCst);
        assert!(poll(leader.as_mut(), &alarm).is_ready());
        if fails {
            let shared = Poll::Ready(Err(Arc::new(Failure(1))));
            assert_eq!(poll(error.as_mut(), &alarm), shared);
        } else {
            assert_eq!(poll(absent.as_mut(), &alarm), Poll::Ready(None));
        }
        let own = Poll::Ready(Err(Arc::new("mine")));
        assert_eq!(poll(other.as_mut(), &alarm), own);
        assert_eq!(poll(plain.as_mut(), &alarm), Poll::Ready(6));
        assert_eq!(cache.stats().load_errors, 1 + u64::from(fails));
        // Nothing is remembered without a negative TTL.
        cache.remove(&1);
        assert_eq!(cache.try_get_or_load(1, || Ok::<u64, Failure>(3)), Ok(3));
    }
}
