//! `update` and `entry`: other writers of the key see each call as one step.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tidewheel::{Cache, Compute, Driver, Lifetime, Loaded, ManualClock, Ttl};

const MS: Duration = Duration::from_millis(1);

use super::setups::manual;

fn cache() -> Cache<u64, u64> {
    manual(&ManualClock::new()).build().expect("valid")
}

#[test]
fn an_update_keeps_the_time_left_unless_a_lifetime_is_given() {
    let clock = ManualClock::new();
    let cache = manual(&clock).build().expect("valid");
    assert_eq!(cache.update(&1, |old| old + 1), None);
    cache.insert_with_ttl(1, 10, 50 * MS);
    clock.advance(20 * MS);
    assert_eq!(cache.update(&1, |old| old + 1), Some(11));
    assert_eq!(cache.ttl(&1), Ttl::Left(30 * MS));
    let longer = |old: &u64| Loaded::new(old + 1, Lifetime::ttl(70 * MS));
    assert_eq!(cache.update_with(&1, longer), Some(12));
    assert_eq!(cache.ttl(&1), Ttl::Left(70 * MS));
    clock.advance(70 * MS);
    assert_eq!(cache.update(&1, |old| old + 1), None);
    cache.validate();
}

#[test]
fn updates_of_many_threads_lose_nothing() {
    let cache = cache();
    cache.insert(1, 0);
    let calls = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..8 {
            let (cache, calls) = (&cache, &calls);
            scope.spawn(move || {
                for _ in 0..500 {
                    let add = |old: &u64| {
                        calls.fetch_add(1, SeqCst);
                        old + 1
                    };
                    if number % 2 == 0 {
                        assert!(cache.update(&1, add).is_some());
                    } else {
                        cache.entry(1).and_update(add).or_insert(1_u64);
                    }
                }
            });
        }
    });
    assert_eq!(cache.get(&1), Some(4000));
    assert_eq!(calls.load(SeqCst), 4000, "each closure runs once");
}

#[test]
fn entries_of_many_threads_insert_once() {
    let cache = cache();
    let made = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let value = cache.entry(1).or_insert_with(|| {
                    made.fetch_add(1, SeqCst);
                    7_u64
                });
                assert_eq!(value, 7);
            });
        }
    });
    assert_eq!(made.load(SeqCst), 1);
}

#[test]
fn a_computation_keeps_puts_updates_or_removes() {
    let clock = ManualClock::new();
    let cache = manual(&clock).build().expect("valid");
    let absent = cache.entry(1).compute(|old| {
        assert_eq!(old, None);
        Compute::Keep
    });
    assert_eq!((absent, cache.len()), (None, 0));
    let put = Loaded::new(10, Lifetime::ttl(30 * MS).tag("a"));
    assert_eq!(cache.entry(1).compute(|_| Compute::Put(put)), Some(10));
    let next = |old: Option<&u64>| Compute::Update(old.map_or(0, |old| old + 1));
    clock.advance(10 * MS);
    assert_eq!(cache.entry(1).compute(next), Some(11));
    assert_eq!(cache.ttl(&1), Ttl::Left(20 * MS));
    assert_eq!(cache.entry(1).compute(|_| Compute::Keep), Some(11));
    assert_eq!(cache.entry(1).compute(|_| Compute::Remove), None);
    assert_eq!(cache.peek(&1), None);
    // Without an old value an update has the configured lifetime.
    assert_eq!(cache.entry(1).compute(next), Some(0));
    assert_eq!(cache.ttl(&1), Ttl::Left(100 * MS));
    assert_eq!(cache.entry(2).and_update(|old| old + 1).or_nothing(), None);
    cache.validate();
}

#[test]
fn readers_see_the_old_value_and_writers_wait_while_a_closure_runs() {
    let cache = cache();
    cache.insert(1, 10);
    cache.insert(2, 20);
    let inserted = AtomicBool::new(false);
    let (entered, in_closure) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let updater = scope.spawn(|| {
            cache.update(&1, move |old| {
                entered.send(()).expect("the test waits");
                gone.recv().expect("the test goes on");
                old + 1
            })
        });
        in_closure.recv().expect("the closure runs");
        assert_eq!(cache.get(&1), Some(10));
        assert_eq!(cache.get_or_load(1, unreached), 10);
        // Other keys are not concerned.
        cache.insert(2, 21);
        assert_eq!(cache.update(&2, |old| old + 1), Some(22));
        let writer = scope.spawn(|| {
            cache.insert(1, 99);
            inserted.store(true, SeqCst);
        });
        assert!(!inserted.load(SeqCst));
        assert_eq!(cache.peek(&1), Some(10));
        go.send(()).expect("the closure waits");
        assert_eq!(updater.join().expect("no panic"), Some(11));
        writer.join().expect("no panic");
    });
    assert_eq!(cache.get(&1), Some(99));
    cache.validate();
}

fn unreached() -> u64 {
    unreachable!("the value is there")
}

#[test]
fn a_load_waits_for_a_closure_that_is_about_to_supply_the_value() {
    let cache = cache();
    let (entered, in_closure) = mpsc::channel();
    let cache = &cache;
    thread::scope(|scope| {
        let loader = scope.spawn(move || {
            in_closure.recv().expect("the closure runs");
            cache.get_or_load(1, || 20_u64)
        });
        let value = cache.entry(1).or_insert_with(|| {
            entered.send(()).expect("the loader waits");
            10_u64
        });
        assert_eq!(value, 10);
        assert_eq!(loader.join().expect("no panic"), 10);
    });
}

#[test]
fn a_closure_that_panics_changes_nothing_and_opens_the_latch() {
    let cache = cache();
    cache.insert(1, 10);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        cache.update(&1, |_| std::panic::resume_unwind(Box::new("closure")))
    }));
    assert!(panicked.is_err());
    assert_eq!(cache.get(&1), Some(10));
    assert_eq!(cache.update(&1, |old| old + 1), Some(11));
    cache.insert(1, 12);
    assert_eq!(cache.get(&1), Some(12));
}

#[test]
fn a_closure_that_changes_its_own_key_panics_instead_of_waiting_for_itself() {
    let cache = cache();
    cache.insert(1, 10);
    type Attempt = fn(&Cache<u64, u64>) -> Option<u64>;
    let attempts: [Attempt; 4] = [
        |cache| {
            cache.insert(1, 11);
            None
        },
        |cache| cache.remove(&1),
        |cache| cache.update(&1, |old| old + 1),
        |cache| cache.entry(1).compute(|_| Compute::Remove),
    ];
    for attempt in attempts {
        let result = catch_unwind(AssertUnwindSafe(|| {
            cache.update(&1, |old| {
                assert_eq!(attempt(&cache), None, "must not return");
                *old
            })
        }));
        let panic = result.expect_err("must panic");
        let message = panic.downcast::<String>().expect("a message");
        assert!(message.contains("the key that it is about to supply"));
        assert_eq!(cache.get(&1), Some(10));
    }
    // The closure may read its own key, and change another one.
    let sum = cache.update(&1, |old| {
        cache.insert(2, 5);
        old + cache.get(&1).unwrap_or_default()
    });
    assert_eq!(sum, Some(20));
    let loads_itself = catch_unwind(AssertUnwindSafe(|| {
        cache
            .entry(3)
            .or_insert_with(|| cache.get_or_load(3, || 1_u64))
    }));
    assert!(loads_itself.is_err());
}

#[test]
fn what_is_cleared_or_invalidated_while_a_closure_runs_stays_away() {
    let clock = ManualClock::new();
    let cache = manual(&clock).build().expect("valid");
    cache.insert(1, 10);
    let updated = cache.update(&1, |old| {
        cache.invalidate_all();
        old + 1
    });
    assert_eq!((updated, cache.peek(&1)), (None, None));
    cache.insert(1, 10);
    let put = cache.entry(1).compute(|_| {
        cache.invalidate_all();
        Compute::Put(11.into())
    });
    assert_eq!((put, cache.peek(&1)), (None, None));
    cache.insert_with(1, 10, Lifetime::forever().tag("a"));
    let put = cache.entry(1).compute(|_| {
        assert!(cache.invalidate_tag("a"));
        Compute::Put(11.into())
    });
    assert_eq!((put, cache.peek(&1)), (None, None));
    // A key that was not there before counts as stored after the invalidation.
    let put = cache.entry(2).or_insert_with(|| {
        cache.invalidate_all();
        5_u64
    });
    assert_eq!((put, cache.peek(&2)), (5, Some(5)));
    cache.validate();
}

#[test]
fn an_entry_that_ends_while_its_update_runs_is_over() {
    let clock = ManualClock::new();
    let cache = manual(&clock).build().expect("valid");
    cache.insert(1, 10);
    let updated = cache.update(&1, |old| {
        clock.advance(100 * MS);
        cache.advance(cache.now(), u32::MAX);
        old + 1
    });
    assert_eq!((updated, cache.peek(&1), cache.len()), (None, None, 0));
    cache.validate();
}

#[test]
fn an_update_weighs_its_value_again_and_keeps_within_the_capacity() {
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(100)
        .weigher(|_, value| u32::try_from(*value).unwrap_or(u32::MAX))
        .no_default_ttl()
        .clock(ManualClock::new())
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    for key in 0..10 {
        cache.insert(key, 10);
    }
    assert_eq!(cache.update(&0, |_| 60), Some(60));
    assert!(cache.weight() <= 100, "{}", cache.weight());
    assert_eq!(cache.update(&0, |_| 101), None);
    assert_eq!(cache.peek(&0), None, "heavier than the whole capacity");
    cache.validate();
}

#[test]
fn an_update_keeps_tags_and_the_soft_deadline() {
    let clock = ManualClock::new();
    let cache = manual(&clock).build().expect("valid");
    cache.insert_with(1, 10, Lifetime::ttl(50 * MS).fresh_for(20 * MS).tag("a"));
    assert_eq!(cache.update(&1, |old| old + 1), Some(11));
    clock.advance(20 * MS);
    assert_eq!(cache.get(&1), Some(11));
    assert_eq!(cache.stats().stale_hits, 1);
    assert!(cache.invalidate_tag("a"));
    assert_eq!(cache.get(&1), None);
    cache.validate();
}

/// When the entry left meanwhile, `update` stored nothing, but `update_with` stored its value.
#[test]
fn an_update_of_an_entry_that_goes_while_the_closure_runs_is_none() {
    type Go = fn(&Cache<u64, u64>, &ManualClock);
    let ways: [Go; 3] = [
        |_, clock| clock.advance(50 * MS),
        |cache, clock| {
            clock.advance(50 * MS);
            cache.advance(cache.now(), u32::MAX);
        },
        |cache, _| {
            cache.invalidate_tag("t");
        },
    ];
    for go in ways {
        let clock = ManualClock::new();
        let cache = manual(&clock).build().expect("valid");
        cache.insert_with(1, 10, Lifetime::ttl(50 * MS).tag("t"));
        let updated = cache.update_with(&1, |old| {
            go(&cache, &clock);
            Loaded::new(old + 1, Lifetime::ttl(70 * MS))
        });
        assert_eq!((updated, cache.get(&1)), (None, None));
        cache.insert_with(1, 10, Lifetime::ttl(50 * MS).tag("t"));
        let updated = cache.update(&1, |old| {
            go(&cache, &clock);
            old + 1
        });
        assert_eq!((updated, cache.get(&1)), (None, None));
        cache.validate();
    }
}

/// There was no entry to invalidate, so the value counts as stored after the invalidation.
#[test]
fn a_put_on_an_absent_key_is_stored_though_its_closure_invalidates_everything() {
    let cache = cache();
    let put = cache.entry(1).compute(|_| {
        cache.invalidate_all();
        Compute::Put(5.into())
    });
    assert_eq!((put, cache.get(&1)), (Some(5), Some(5)));
}
