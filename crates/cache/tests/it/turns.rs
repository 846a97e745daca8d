//! `compute_async`: closures of one key take turns, and no other writer waits for them.

use std::cell::RefCell;
use std::future::{Future, pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tidewheel::{
    Cache, Compute, Driver, Lifetime, Loaded, ManualClock, Outcome, RemovalCause, Ttl,
};

use crate::loading::{MS, manual, unreached, until};
use crate::manual_poll::{Alarm, block_on, flagged, poll};

type Write = fn(&Cache<u64, u64>);
type Change<'a> = Pin<Box<dyn Future<Output = Option<u64>> + 'a>>;

fn cache() -> Cache<u64, u64> {
    manual(&ManualClock::new()).build().expect("valid")
}

fn add(old: Option<u64>) -> Compute<u64> {
    match old {
        Some(old) => Compute::Update(old + 1),
        None => Compute::Put(1.into()),
    }
}

/// A change that waits for a flag before it adds one, and notes what it has seen.
fn slow<'a>(
    cache: &'a Cache<u64, u64>,
    key: u64,
    go: &'a AtomicBool,
    seen: &'a RefCell<Vec<Option<u64>>>,
) -> Change<'a> {
    Box::pin(cache.entry(key).compute_async(move |old| async move {
        seen.borrow_mut().push(old);
        flagged(go).await;
        add(old)
    }))
}

#[test]
fn a_closure_decides_what_becomes_of_a_key() {
    let cache = cache();
    let compute = |wanted: fn(Option<u64>) -> Compute<u64>| {
        block_on(
            cache
                .entry_by_ref(&1)
                .compute_async(|old| ready(wanted(old))),
        )
    };
    assert_eq!(compute(|_| Compute::Keep), None);
    assert_eq!(compute(add), Some(1));
    assert_eq!(compute(add), Some(2));
    assert_eq!(compute(|_| Compute::Keep), Some(2));
    assert_eq!(compute(|_| Compute::Remove), None);
    assert_eq!(cache.get(&1), None);
    assert_eq!(compute(|_| Compute::Remove), None);
    assert_eq!(compute(|old| Compute::Update(old.unwrap_or(7))), Some(7));
    assert_eq!(cache.stats().loads, 0);
    cache.validate();
}

#[test]
fn an_update_keeps_lifetime_and_tags_and_a_put_has_its_own() {
    let clock = ManualClock::new();
    let cache = manual(&clock).build().expect("valid");
    cache.insert_with(1, 5, Lifetime::ttl(40 * MS).tag("t"));
    clock.advance(10 * MS);
    assert_eq!(
        block_on(cache.entry(1).compute_async(|old| ready(add(old)))),
        Some(6)
    );
    assert_eq!(cache.ttl(&1), Ttl::Left(30 * MS));
    assert!(cache.invalidate_tag("t"));
    assert_eq!(cache.get(&1), None);
    let put = || ready(Compute::Put(Loaded::new(8, Lifetime::ttl(20 * MS))));
    assert_eq!(block_on(cache.entry(1).compute_async(|_| put())), Some(8));
    assert_eq!(cache.ttl(&1), Ttl::Left(20 * MS));
}

#[test]
fn increments_by_many_threads_are_all_there() {
    let cache = cache();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for number in 0..200_u64 {
                    let entry = cache.entry(number % 2);
                    let added = entry.compute_async(async |old| {
                        thread::yield_now();
                        add(old)
                    });
                    assert!(block_on(added).is_some());
                }
            });
        }
    });
    assert_eq!((cache.get(&0), cache.get(&1)), (Some(800), Some(800)));
    cache.validate();
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

#[test]
fn one_whose_turn_it_is_and_who_goes_away_passes_it_on() {
    let cache = cache();
    let (go, seen) = (AtomicBool::new(false), RefCell::new(Vec::new()));
    let mut changes: Vec<_> = (0..4).map(|_| slow(&cache, 1, &go, &seen)).collect();
    let alarms: Vec<_> = (0..4).map(|_| Alarm::new()).collect();
    for (change, alarm) in changes.iter_mut().zip(&alarms) {
        assert!(poll(change.as_mut(), alarm).is_pending());
    }
    // The one that runs; then the one that was chosen; one remains that waits, and one that was
    // dropped while it waited.
    drop(changes.remove(2));
    drop(changes.remove(0));
    assert_eq!(alarms[1].woken.load(SeqCst), 1);
    drop(changes.remove(0));
    assert_eq!(alarms[3].woken.load(SeqCst), 1);
    go.store(true, SeqCst);
    assert_eq!(poll(changes[0].as_mut(), &alarms[3]), Poll::Ready(Some(1)));
    drop(changes);
    for alarm in &alarms {
        assert_eq!(Arc::strong_count(alarm), 1, "a waker has leaked");
    }
    assert_eq!(seen.borrow().len(), 2);
    cache.validate();
}

#[test]
fn a_plain_writer_does_not_wait_and_the_closure_runs_again() {
    let writers: [(Write, Option<u64>); 6] = [
        (|cache| cache.insert(1, 50), Some(50)),
        (|cache| assert_eq!(cache.remove(&1), Some(5)), None),
        (
            |cache| assert_eq!(cache.update(&1, |old| old + 10), Some(15)),
            Some(15),
        ),
        (
            |cache| assert_eq!(cache.entry(1).compute(|_| Compute::Remove), None),
            None,
        ),
        (Cache::invalidate_all, None),
        (
            |cache| assert_eq!(cache.invalidate_if(|_, _| true), 1),
            None,
        ),
    ];
    for (number, (write, left)) in writers.into_iter().enumerate() {
        let cache = cache();
        cache.insert(1, 5);
        let (go, seen) = (AtomicBool::new(false), RefCell::new(Vec::new()));
        let mut change = slow(&cache, 1, &go, &seen);
        let alarm = Alarm::new();
        assert!(poll(change.as_mut(), &alarm).is_pending());
        write(&cache);
        assert_eq!(cache.get(&1), left, "writer {number}");
        go.store(true, SeqCst);
        let expected = left.map_or(1, |left| left + 1);
        assert_eq!(poll(change.as_mut(), &alarm), Poll::Ready(Some(expected)));
        assert_eq!(*seen.borrow(), [Some(5), left]);
        cache.validate();
    }
}

#[test]
fn what_has_expired_or_was_invalidated_by_its_tag_is_not_what_the_closure_saw() {
    let clock = ManualClock::new();
    for by_time in [true, false] {
        let cache = manual(&clock).build().expect("valid");
        cache.insert_with(1, 5, Lifetime::ttl(40 * MS).tag("t"));
        let (go, seen) = (AtomicBool::new(false), RefCell::new(Vec::new()));
        let mut change = slow(&cache, 1, &go, &seen);
        let alarm = Alarm::new();
        assert!(poll(change.as_mut(), &alarm).is_pending());
        if by_time {
            clock.advance(40 * MS);
        } else {
            assert!(cache.invalidate_tag("t"));
        }
        go.store(true, SeqCst);
        assert_eq!(poll(change.as_mut(), &alarm), Poll::Ready(Some(1)));
        assert_eq!(*seen.borrow(), [Some(5), None]);
        assert_eq!(cache.ttl(&1), Ttl::Left(100 * MS));
    }
}

#[test]
fn after_keep_nothing_runs_again() {
    let cache = cache();
    let (go, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut change = Box::pin(cache.entry(1).compute_async(|_| {
        calls.fetch_add(1, SeqCst);
        let go = &go;
        async move {
            flagged(go).await;
            Compute::Keep
        }
    }));
    let alarm = Alarm::new();
    assert!(poll(change.as_mut(), &alarm).is_pending());
    cache.insert(1, 9);
    go.store(true, SeqCst);
    assert_eq!(poll(change.as_mut(), &alarm), Poll::Ready(Some(9)));
    assert_eq!(calls.load(SeqCst), 1);
}

/// Those who waited behind the one that was superseded do not wait for what it does next.
#[test]
fn one_that_was_superseded_asks_for_its_turn_again() {
    let cache = cache();
    let (go, seen) = (AtomicBool::new(false), RefCell::new(Vec::new()));
    let mut first = slow(&cache, 1, &go, &seen);
    let mut second = slow(&cache, 1, &go, &seen);
    let alarms = [Alarm::new(), Alarm::new()];
    assert!(poll(first.as_mut(), &alarms[0]).is_pending());
    assert!(poll(second.as_mut(), &alarms[1]).is_pending());
    cache.insert(1, 10);
    // A third one leads a flight of its own meanwhile.
    let third = cache.entry(1).compute_async(|old| ready(add(old)));
    assert_eq!(block_on(third), Some(11));
    go.store(true, SeqCst);
    assert_eq!(poll(first.as_mut(), &alarms[0]), Poll::Ready(Some(12)));
    assert_eq!(alarms[1].woken.load(SeqCst), 1);
    assert_eq!(poll(second.as_mut(), &alarms[1]), Poll::Ready(Some(13)));
    cache.validate();
}

#[test]
fn a_panic_changes_nothing_and_passes_the_turn_on() {
    let cache = cache();
    cache.insert(1, 5);
    let at_once = cache
        .entry(1)
        .compute_async(|_| -> std::future::Ready<Compute<u64>> {
            std::panic::resume_unwind(Box::new("closure"))
        });
    let later = cache
        .entry(1)
        .compute_async(async |_| std::panic::resume_unwind(Box::new("future")));
    let changes: [Change<'_>; 2] = [Box::pin(at_once), Box::pin(later)];
    for mut change in changes {
        let (go, seen) = (AtomicBool::new(true), RefCell::new(Vec::new()));
        let alarms = [Alarm::new(), Alarm::new()];
        let never = AtomicBool::new(false);
        let mut blocker = slow(&cache, 1, &never, &seen);
        assert!(poll(blocker.as_mut(), &alarms[0]).is_pending());
        assert!(poll(change.as_mut(), &alarms[0]).is_pending());
        let mut next = slow(&cache, 1, &go, &seen);
        assert!(poll(next.as_mut(), &alarms[1]).is_pending());
        drop(blocker);
        let ended = catch_unwind(AssertUnwindSafe(|| poll(change.as_mut(), &alarms[0])));
        assert!(ended.is_err());
        let before = cache.get(&1).expect("nothing has changed");
        assert_eq!(
            poll(next.as_mut(), &alarms[1]),
            Poll::Ready(Some(before + 1))
        );
    }
    assert_eq!(cache.stats().load_errors, 0);
    cache.validate();
}

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
    for (number, call) in within.into_iter().enumerate() {
        let cache = cache();
        cache.insert(1, 5);
        let cache = &cache;
        let change = cache.entry(1).compute_async(async |_| {
            call(cache);
            Compute::Keep
        });
        let ended = catch_unwind(AssertUnwindSafe(|| block_on(change)));
        let panic = ended.expect_err("it panics");
        let said = panic.downcast_ref::<String>().expect("a message");
        assert!(
            said.contains("the key that it is about to supply"),
            "{number}: {said}"
        );
        assert_eq!(cache.get(&1), Some(5));
        // The key is free again.
        cache.insert(1, 8);
        assert_eq!(cache.get(&1), Some(8));
    }
    let cache = cache();
    let cache = &cache;
    let loads = cache.entry(1).compute_async(async |_| {
        cache.get_or_load(1, || 5);
        Compute::Keep
    });
    assert!(catch_unwind(AssertUnwindSafe(|| block_on(loads))).is_err());
}

#[test]
fn other_keys_may_be_changed_from_within() {
    let cache = cache();
    let cache = &cache;
    let change = cache.entry(1).compute_async(async |_| {
        cache.insert(2, 6);
        let three = cache
            .entry(3)
            .compute_async(|_| ready(Compute::Put(7.into())));
        Compute::Put((three.await.unwrap_or(0) + cache.get_or_load(4, || 1)).into())
    });
    assert_eq!(block_on(change), Some(8));
    assert_eq!((cache.get(&2), cache.get(&3)), (Some(6), Some(7)));
}

#[test]
fn a_load_waits_for_the_closure_and_gets_its_value() {
    let cache = cache();
    let (go, seen) = (AtomicBool::new(false), RefCell::new(Vec::new()));
    let mut change = slow(&cache, 1, &go, &seen);
    let alarms = [Alarm::new(), Alarm::new(), Alarm::new()];
    assert!(poll(change.as_mut(), &alarms[0]).is_pending());
    let mut load = Box::pin(cache.fetch(1).load_async(async { unreached() }));
    let mut next = Box::pin(cache.entry(1).compute_async(|old| ready(add(old))));
    assert!(poll(load.as_mut(), &alarms[1]).is_pending());
    assert!(poll(next.as_mut(), &alarms[2]).is_pending());
    go.store(true, SeqCst);
    assert_eq!(poll(change.as_mut(), &alarms[0]), Poll::Ready(Some(1)));
    let Poll::Ready(found) = poll(load.as_mut(), &alarms[1]) else {
        panic!("the value is there")
    };
    assert_eq!((found.value, found.outcome), (1, Outcome::Joined));
    assert_eq!(
        alarms[2].woken.load(SeqCst),
        1,
        "the load has passed the turn on"
    );
    assert_eq!(poll(next.as_mut(), &alarms[2]), Poll::Ready(Some(2)));
    assert_eq!(cache.stats().loads, 0);
    cache.validate();
}

#[test]
fn a_load_that_waits_for_a_closure_that_stores_nothing_loads_itself() {
    let cache = cache();
    let go = AtomicBool::new(false);
    let mut change = Box::pin(cache.entry(1).compute_async(async |_| {
        flagged(&go).await;
        Compute::Remove
    }));
    let alarm = Alarm::new();
    assert!(poll(change.as_mut(), &alarm).is_pending());
    thread::scope(|scope| {
        let load = scope.spawn(|| cache.get_or_load(1, || 9));
        until("the thread waits", || cache.stats().misses == 1);
        go.store(true, SeqCst);
        assert_eq!(poll(change.as_mut(), &alarm), Poll::Ready(None));
        assert_eq!(load.join().expect("loads"), 9);
    });
    cache.validate();
}

#[test]
fn a_closure_waits_for_a_load_and_for_a_latch_without_blocking() {
    let cache = cache();
    let go = AtomicBool::new(false);
    let alarms = [Alarm::new(), Alarm::new()];
    let mut load = Box::pin(cache.get_or_load_async(1, async {
        flagged(&go).await;
        5
    }));
    assert!(poll(load.as_mut(), &alarms[0]).is_pending());
    let mut change = Box::pin(cache.entry(1).compute_async(|old| ready(add(old))));
    assert!(poll(change.as_mut(), &alarms[1]).is_pending());
    go.store(true, SeqCst);
    assert_eq!(poll(load.as_mut(), &alarms[0]), Poll::Ready(5));
    assert_eq!(poll(change.as_mut(), &alarms[1]), Poll::Ready(Some(6)));

    let (entered, opened) = (mpsc::channel(), mpsc::channel::<()>());
    thread::scope(|scope| {
        let cache = &cache;
        scope.spawn(move || {
            cache.update(&1, |old| {
                entered.0.send(()).expect("heard");
                opened.1.recv().expect("opened");
                old + 10
            })
        });
        entered
            .1
            .recv_timeout(Duration::from_secs(10))
            .expect("entered");
        let mut change = Box::pin(cache.entry(1).compute_async(|old| ready(add(old))));
        assert!(poll(change.as_mut(), &alarms[1]).is_pending());
        opened.0.send(()).expect("heard");
        assert_eq!(block_on(change), Some(17));
    });
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
fn what_is_too_heavy_or_comes_to_a_closed_cache_is_not_stored() {
    let left = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&left);
    let cache = manual(&ManualClock::new())
        .max_capacity(10)
        .weigher(|_, value| *value as u32)
        .eviction_listener(move |removal| {
            assert_ne!(removal.cause, RemovalCause::Expired);
            counted.fetch_add(1, SeqCst);
        })
        .build()
        .expect("valid");
    cache.insert(1, 5);
    let heavy = || cache.entry(1).compute_async(|_| ready(Compute::Update(11)));
    assert_eq!(block_on(heavy()), None);
    assert_eq!(cache.get(&1), None);
    cache.close();
    assert_eq!(left.load(SeqCst), 2);
    let late = cache
        .entry(1)
        .compute_async(|_| ready(Compute::Put(1.into())));
    assert_eq!(block_on(late), None);
    assert_eq!(cache.len(), 0);
}

/// Keys and values whose `Clone` or `Drop` panics, and futures that are dropped before, between and
/// after their polls.
#[test]
fn futures_dropped_at_any_await_leave_the_key_to_others() {
    for polls in 0..4 {
        let cache = cache();
        let (go, seen) = (AtomicBool::new(false), RefCell::new(Vec::new()));
        let mut first = slow(&cache, 1, &go, &seen);
        let mut second = slow(&cache, 1, &go, &seen);
        let alarm = Alarm::new();
        for number in 0..polls {
            assert!(poll(first.as_mut(), &alarm).is_pending());
            assert!(poll(second.as_mut(), &alarm).is_pending());
            if number == 1 {
                cache.insert(1, 3);
            }
        }
        drop(first);
        go.store(true, SeqCst);
        let expected = if polls < 2 { 1 } else { 4 };
        assert_eq!(poll(second.as_mut(), &alarm), Poll::Ready(Some(expected)));
        drop(second);
        cache.validate();
    }
}

#[cfg(not(target_family = "wasm"))]
#[test]
fn on_a_current_thread_runtime_an_insertion_goes_first() {
    let cache = Cache::builder()
        .max_capacity(100)
        .no_default_ttl()
        .clock(ManualClock::new())
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let seen = Arc::new(AtomicUsize::new(0));
    let (begun, written) = (AtomicBool::new(false), AtomicBool::new(false));
    let flags = Arc::new((begun, written));
    let ended = runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(10), async {
            let (changing, counted, told) = (cache.clone(), Arc::clone(&seen), Arc::clone(&flags));
            let change = tokio::spawn(async move {
                let entry = changing.entry("page");
                let change = entry.compute_async(async |old: Option<u64>| {
                    counted.fetch_add(1, SeqCst);
                    told.0.store(true, SeqCst);
                    while !told.1.load(SeqCst) {
                        tokio::task::yield_now().await;
                    }
                    Compute::Put((old.unwrap_or(0) + 1).into())
                });
                change.await
            });
            let writing = cache.clone();
            let write = tokio::spawn(async move {
                while !flags.0.load(SeqCst) {
                    tokio::task::yield_now().await;
                }
                writing.insert("page", 40);
                flags.1.store(true, SeqCst);
            });
            write.await.expect("no panic");
            change.await.expect("no panic")
        })
        .await
    });
    assert_eq!(ended.expect("in time"), Some(41));
    assert_eq!(seen.load(SeqCst), 2);
}

/// One task that changes a key again and again must not keep another one from its turn.
#[test]
fn a_busy_task_leaves_others_their_turns() {
    let cache = cache();
    let yields = || {
        let mut yielded = false;
        std::future::poll_fn(move |context| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
    };
    let runs = RefCell::new(Vec::new());
    let task = |number: u64| {
        let (cache, runs) = (&cache, &runs);
        async move {
            for _ in 0..20 {
                let add = cache.entry(1).compute_async(async |old| {
                    yields().await;
                    runs.borrow_mut().push(number);
                    add(old)
                });
                add.await;
            }
        }
    };
    let mut tasks: Vec<_> = (0..3).map(|number| Some(Box::pin(task(number)))).collect();
    let alarms: Vec<_> = (0..3).map(|_| Alarm::new()).collect();
    for _ in 0..1000 {
        for (slot, alarm) in tasks.iter_mut().zip(&alarms) {
            if slot
                .as_mut()
                .is_some_and(|task| poll(task.as_mut(), alarm).is_ready())
            {
                *slot = None;
            }
        }
    }
    assert_eq!(cache.get(&1), Some(60));
    let runs = runs.borrow();
    let fair = runs.chunks(3).all(|round| round == &runs[..3]);
    assert!(fair, "in turn: {runs:?}");
}
