//! Loads: one for all who ask, who takes over, what overtakes them.

use std::future::{Future, pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::task::Poll;
use std::thread;

use tidewheel::{Cache, ManualClock};

use crate::loading::{Failure, manual, unreached, until};
use crate::manual_poll::{Alarm, block_on, flagged, poll};

fn cache() -> Cache<u64, u64> {
    manual(&ManualClock::new()).build().expect("valid")
}

#[test]
fn a_thousand_threads_cause_one_load() {
    let cache = cache();
    let loads = AtomicUsize::new(0);
    let started = Barrier::new(1000);
    thread::scope(|scope| {
        for _ in 0..1000 {
            thread::Builder::new()
                .stack_size(128 * 1024)
                .spawn_scoped(scope, || {
                    started.wait();
                    let value = cache.get_or_load(7, || {
                        loads.fetch_add(1, SeqCst);
                        70_u64
                    });
                    assert_eq!(value, 70);
                })
                .expect("a thread");
        }
    });
    assert_eq!(loads.load(SeqCst), 1);
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.load_errors, stats.inserts), (1, 0, 1));
    assert_eq!(stats.hits + stats.misses, 1000);
    cache.validate();
}

#[test]
fn threads_and_tasks_share_one_load() {
    let cache = cache();
    let loads = AtomicUsize::new(0);
    let go = AtomicBool::new(false);
    let mut leader = Box::pin(cache.get_or_load_async(1, async {
        loads.fetch_add(1, SeqCst);
        flagged(&go).await;
        10_u64
    }));
    let alarm = Alarm::new();
    assert!(poll(leader.as_mut(), &alarm).is_pending());
    let waiting = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (cache, waiting, loads) = (&cache, &waiting, &loads);
        for number in 0..8 {
            scope.spawn(move || {
                waiting.fetch_add(1, SeqCst);
                let value = if number % 2 == 0 {
                    cache.get_or_load(1, unreached)
                } else {
                    block_on(cache.get_or_load_async(1, async {
                        loads.fetch_add(1, SeqCst);
                        11_u64
                    }))
                };
                assert_eq!(value, 10);
            });
        }
        until("all have begun", || waiting.load(SeqCst) == 8);
        go.store(true, SeqCst);
        assert_eq!(poll(leader.as_mut(), &alarm), Poll::Ready(10));
    });
    assert_eq!(loads.load(SeqCst), 1);
}

#[test]
fn a_leader_that_panics_hands_over_to_one_waiter() {
    let cache = cache();
    let running = AtomicUsize::new(0);
    let most = AtomicUsize::new(0);
    let loads = AtomicUsize::new(0);
    let failures = 3;
    thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| {
                let result = catch_unwind(AssertUnwindSafe(|| {
                    cache.get_or_load(1, || {
                        let now = running.fetch_add(1, SeqCst) + 1;
                        most.fetch_max(now, SeqCst);
                        let number = loads.fetch_add(1, SeqCst);
                        thread::yield_now();
                        running.fetch_sub(1, SeqCst);
                        if number < failures {
                            std::panic::resume_unwind(Box::new("loader"));
                        }
                        5_u64
                    })
                }));
                assert!(result.is_err() || result.is_ok_and(|value| value == 5));
            });
        }
    });
    assert_eq!(most.load(SeqCst), 1, "never two loaders at once");
    assert_eq!(loads.load(SeqCst), failures + 1);
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.load_errors), (4, 3));
    assert_eq!(cache.get(&1), Some(5));
}

#[test]
fn loading_futures_may_move_between_threads() {
    fn is_send<T: Send>(future: T) -> T {
        future
    }
    let cache = cache();
    let one = is_send(cache.get_or_load_async(1, ready(1_u64)));
    let two = is_send(cache.try_get_or_load_async(2, ready(Ok::<u64, Failure>(2))));
    let three = is_send(cache.optionally_get_or_load_async(3, ready(Some(3_u64))));
    let loaded = thread::scope(|scope| {
        let loaded = scope.spawn(|| (block_on(one), block_on(two), block_on(three)));
        loaded.join().expect("no panic")
    });
    assert_eq!(loaded, (1, Ok(2), Some(3)));
}

#[test]
fn absences_are_shared_and_those_who_need_a_value_load_themselves() {
    let cache = cache();
    let go = AtomicBool::new(false);
    let alarm = Alarm::new();
    let mut leader = Box::pin(cache.optionally_get_or_load_async(1, async {
        flagged(&go).await;
        None::<u64>
    }));
    let unpolled = poll_fn(|_| -> Poll<Option<u64>> { unreachable!("the absence is shared") });
    let mut alike = Box::pin(cache.optionally_get_or_load_async(1, unpolled));
    let mut other = Box::pin(cache.get_or_load_async(1, ready(6_u64)));
    assert!(poll(leader.as_mut(), &alarm).is_pending());
    assert!(poll(alike.as_mut(), &alarm).is_pending());
    assert!(poll(other.as_mut(), &alarm).is_pending());
    go.store(true, SeqCst);
    assert_eq!(poll(leader.as_mut(), &alarm), Poll::Ready(None));
    assert_eq!(poll(alike.as_mut(), &alarm), Poll::Ready(None));
    assert_eq!(poll(other.as_mut(), &alarm), Poll::Ready(6));
    assert_eq!(cache.get(&1), Some(6));
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
        type Attempt = fn(&Cache<u64, u64>) -> u64;
        let attempts: [Attempt; 3] = [
            |cache| cache.get_or_load(1, || 11_u64),
            |cache| {
                cache
                    .try_get_or_load(1, || Ok::<u64, Failure>(11))
                    .unwrap_or(0)
            },
            |cache| {
                cache
                    .optionally_get_or_load(1, || Some(11_u64))
                    .unwrap_or(0)
            },
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

/// Begins a load on this thread's behalf that ends when the flag is set, and lets `wait` run
/// meanwhile.
fn while_loading<E: Send + Sync + 'static>(
    cache: &Cache<u64, u64>,
    result: Result<u64, E>,
    waiters: usize,
    wait: impl Fn(&AtomicUsize) + Sync,
) -> Result<u64, Arc<E>> {
    let go = AtomicBool::new(false);
    let mut leader = Box::pin(cache.try_get_or_load_async(1, async {
        flagged(&go).await;
        result
    }));
    let alarm = Alarm::new();
    assert!(poll(leader.as_mut(), &alarm).is_pending());
    let entered = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..waiters {
            scope.spawn(|| wait(&entered));
        }
        until("all have begun", || entered.load(SeqCst) == waiters);
        go.store(true, SeqCst);
        match poll(leader.as_mut(), &alarm) {
            Poll::Ready(result) => result,
            Poll::Pending => panic!("the flag is set"),
        }
    })
}

/// Waits for the key's load as a task that is polled once before anything else happens.
fn join_then<T>(entered: &AtomicUsize, future: impl Future<Output = T>) -> T {
    let mut future = Box::pin(future);
    assert!(poll(future.as_mut(), &Alarm::new()).is_pending());
    entered.fetch_add(1, SeqCst);
    block_on(future)
}

#[test]
fn an_error_is_shared_with_those_whose_loader_fails_alike() {
    let cache = cache();
    let own = AtomicUsize::new(0);
    let result = while_loading(&cache, Err(Failure(1)), 4, |entered| {
        let load = async { Err::<u64, _>(Failure(2)) };
        let waited = join_then(entered, cache.try_get_or_load_async(1, load));
        // One may have come after the flight was over, and others waited for that one.
        let error = waited.expect_err("a failure");
        own.fetch_add(usize::from(*error == Failure(2)), SeqCst);
    });
    assert_eq!(*result.expect_err("a failure"), Failure(1));
    assert_eq!(own.load(SeqCst), 0);
    assert_eq!((cache.stats().loads, cache.stats().load_errors), (1, 1));
    // Nothing is remembered without a negative TTL.
    assert_eq!(cache.try_get_or_load(1, || Ok::<u64, Failure>(3)), Ok(3));
}

#[test]
fn a_waiter_with_another_error_type_loads_itself() {
    let cache = cache();
    let result = while_loading(&cache, Err(Failure(1)), 1, |entered| {
        let load = async { Err::<u64, _>("mine") };
        let waited = join_then(entered, cache.try_get_or_load_async(1, load));
        assert_eq!(*waited.expect_err("a failure"), "mine");
    });
    assert_eq!(*result.expect_err("a failure"), Failure(1));
    let result = while_loading(&cache, Err(Failure(1)), 1, |entered| {
        let waited = join_then(entered, cache.get_or_load_async(1, ready(8_u64)));
        assert_eq!(waited, 8);
    });
    assert_eq!(*result.expect_err("a failure"), Failure(1));
    assert_eq!(cache.get(&1), Some(8));
}

#[test]
fn the_waiters_of_a_superseded_load_whose_leader_fails_look_again() {
    let cache = cache();
    let alarm = Alarm::new();
    let mut leader = Box::pin(cache.get_or_load_async(1, pending::<u64>()));
    let mut waiters: Vec<_> = (0..3)
        .map(|_| Box::pin(cache.get_or_load_async(1, pending::<u64>())))
        .collect();
    assert!(poll(leader.as_mut(), &alarm).is_pending());
    for waiter in &mut waiters {
        assert!(poll(waiter.as_mut(), &alarm).is_pending());
    }
    cache.insert(1, 33);
    drop(leader);
    assert_eq!(alarm.woken.load(SeqCst), 3);
    for waiter in &mut waiters {
        assert_eq!(poll(waiter.as_mut(), &alarm), Poll::Ready(33));
    }
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
