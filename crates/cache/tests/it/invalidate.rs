//! Invalidation by a predicate removes exactly what was judged.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;

use tidewheel::Cache;

use crate::loading::Valid;

#[test]
fn a_value_that_does_not_match_is_never_removed_though_writers_are_busy() {
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(100_000)
        .no_default_ttl()
        .shards(1)
        .valid();
    for key in 0..2000 {
        cache.insert(key, key % 2);
    }
    let over = AtomicBool::new(false);
    let (writes, removals) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for writer in 0..2u64 {
            let (cache, over, writes) = (&cache, &over, &writes);
            scope.spawn(move || {
                let mut round = 0;
                while !over.load(Relaxed) {
                    round += 1;
                    // This thread's keys: even ones hold even values, which nobody invalidates.
                    let key = (round * 2 + writer * 1000) % 2000;
                    let before = cache.get(&key);
                    assert!(before.is_some(), "{key} was removed");
                    cache.insert(key, round * 2);
                    cache.insert(key + 1, round * 2 + 1);
                    writes.fetch_add(1, Relaxed);
                }
            });
        }
        let mut passes = 0;
        while passes < 200 || writes.load(Relaxed) < 2000 || removals.load(Relaxed) <= 1000 {
            let removed = cache.invalidate_if(|_, value| value % 2 == 1);
            removals.fetch_add(removed, Relaxed);
            passes += 1;
        }
        over.store(true, Relaxed);
    });
    cache.invalidate_if(|_, value| value % 2 == 1);
    assert_eq!(cache.len(), 1000);
    cache.validate();
}

#[test]
fn an_update_in_progress_is_waited_for_and_its_value_judged() {
    let cache: Cache<u64, u64> = Cache::builder().max_capacity(100).no_default_ttl().valid();
    cache.insert(1, 1);
    cache.insert(2, 1);
    let (begun, has_begun) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let shared = &cache;
        let updated = scope.spawn(move || {
            shared.update(&1, |value| {
                begun.send(()).expect("the test waits");
                may_go.recv().expect("the test goes on");
                value + 100
            })
        });
        has_begun.recv().expect("the closure runs");
        let mut judged = 0;
        let invalidated = scope.spawn(move || {
            shared.invalidate_if(|_, value| {
                // The closure goes on once both entries were judged.
                judged += 1;
                if judged == 2 {
                    go.send(()).expect("the closure waits");
                }
                *value > 0
            })
        });
        assert_eq!(updated.join().expect("no panic"), Some(101));
        assert_eq!(invalidated.join().expect("no panic"), 2);
    });
    assert!(cache.is_empty());
    cache.validate();
}
