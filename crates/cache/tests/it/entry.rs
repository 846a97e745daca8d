//! `update` and `entry`: other writers of the key see each call as one step.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

use tidewheel::{Cache, Compute, ManualClock};

use crate::loading::manual;

fn cache() -> Cache<u64, u64> {
    manual(&ManualClock::new()).build().expect("valid")
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
