//! Loads: one for all who ask, who takes over, what overtakes them.

use std::future::{poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;
use std::thread;

use tidewheel::{Cache, Loaded, ManualClock};

use crate::loading::{Failure, Valid, manual};
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
