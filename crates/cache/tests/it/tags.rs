//! Entries that are invalidated by their tags: invisible at once, removed by the driver.

use std::future::pending;
use std::task::{Context, Waker};

use tidewheel::{Builder, Cache, Driver, Lifetime, ManualClock};

use crate::loading::{MS, Valid, by_hand};
use crate::manual_poll::turn;

fn manual() -> Builder<u64, u64> {
    by_hand(&ManualClock::new()).max_capacity(100_000)
}

#[test]
fn a_sweep_keeps_to_its_budget() {
    let cache = manual().shards(1).valid();
    for key in 0..10_000 {
        cache.insert_with(key, key, Lifetime::forever().tag("a"));
    }
    cache.invalidate_tag("a");
    let mut calls = 0;
    let mut before = cache.len();
    while cache.advance(cache.now(), 64).backlog {
        let now = cache.len();
        assert!(before - now <= 64, "{before} -> {now}");
        before = now;
        calls += 1;
    }
    assert!(calls > 150, "{calls}");
    assert!(cache.is_empty());
}

fn tagged(keys: std::ops::Range<u64>, cache: &Cache<u64, u64>) {
    for key in keys {
        cache.insert_with(key, key, Lifetime::forever().tag("a"));
    }
}

/// Entries that it had not come to were kept until they were looked for, or another tag was
/// invalidated.
#[test]
fn a_sweep_that_a_task_has_begun_is_ended_by_whoever_drives_after_it() {
    for by_task in [false, true] {
        let cache = manual().driver(Driver::Task).valid();
        tagged(0..50_000, &cache);
        cache.invalidate_tag("a");
        let mut drive = Box::pin(cache.drive(|_| pending()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(drive.as_mut().poll(&mut context).is_pending());
        drop(drive);
        let left = cache.len();
        assert!(left > 0 && left < 50_000, "{left}");
        if by_task {
            let mut drive = Box::pin(cache.drive(|_| pending()));
            (0..200).for_each(|_| turn(&mut drive));
            assert_eq!(cache.len(), 0);
        } else {
            cache.run_due();
        }
        assert_eq!(cache.len(), 0);
    }
}

#[test]
fn the_thread_removes_invalidated_entries_though_nobody_calls() {
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(100_000)
        .no_default_ttl()
        .valid();
    for round in 0..3 {
        for key in 0..10_000 {
            cache.insert_with(key, key, Lifetime::forever().tag("all"));
        }
        cache.insert(20_000 + round, 1);
        assert!(cache.invalidate_tag("all"));
        for _ in 0..1000 {
            if cache.len() as u64 == round + 1 {
                break;
            }
            std::thread::sleep(10 * MS);
        }
        assert_eq!(cache.len() as u64, round + 1);
    }
    cache.validate();
}
