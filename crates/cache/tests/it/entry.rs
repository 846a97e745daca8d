//! `update` and `entry`: other writers of the key see each call as one step.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

use tidewheel::{Cache, Compute, ManualClock};

use crate::loading::manual;

fn cache() -> Cache<u64, u64> {
    manual(&ManualClock::new()).build().expect("valid")
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
fn of_many_threads_only_one_inserts_an_absent_key() {
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(100_000)
        .no_default_ttl()
        .build()
        .expect("valid");
    let won: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let cache = &cache;
                scope.spawn(move || {
                    (0..2000)
                        .filter(|key| cache.insert_if_absent(*key, thread))
                        .count()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });
    assert_eq!((won, cache.len()), (2000, 2000));
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
