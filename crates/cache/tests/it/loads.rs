//! Loads: one for all who ask, what overtakes them, and what they leave: errors and absences that
//! are remembered, old values that are served, refreshes.

use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tidewheel::{Cache, Condition, Lifetime, ManualClock, Ttl};

use crate::loading::{Failure, MS, Valid, manual, unreached};
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

#[test]
fn the_driver_drops_remembered_errors_that_are_over_and_their_number_is_bounded() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(1, SeqCst);
        }
    }
    let clock = ManualClock::new();
    let builder = || manual(&clock).shards(1).negative_ttl(10 * MS);
    assert!(builder().negative_capacity(0).build().is_err());
    let few = builder().negative_capacity(10);
    for (most, builder) in [(1024, builder()), (10, few)] {
        let cache = builder.valid();
        let alive = Arc::new(AtomicUsize::new(0));
        for key in 0..5000 {
            alive.fetch_add(1, SeqCst);
            let error = Counted(Arc::clone(&alive));
            assert!(cache.try_get_or_load(key, || Err::<u64, _>(error)).is_err());
        }
        assert_eq!(alive.load(SeqCst), most);
        let stats = cache.stats();
        let counts = (stats.negatives, stats.negatives_evicted);
        assert_eq!(counts, (most as u64, 5000 - most as u64));
        assert_eq!((stats.entries, stats.evictions), (0, 0));
        cache.validate();
        clock.advance(10 * MS);
        let mut turns = 0;
        while cache.advance(cache.now(), 100).backlog {
            turns += 1;
        }
        assert!(turns >= most / 200, "in budgets: {turns}");
        assert_eq!(alive.load(SeqCst), 0);
    }
}

#[test]
fn past_the_soft_deadline_one_caller_loads_and_the_others_get_the_old_value() {
    let clock = ManualClock::new();
    let cache = manual(&clock).refresh_after(0.8).valid();
    cache.insert(1, 10);
    clock.advance(79 * MS);
    assert_eq!(cache.get_or_load(1, unreached), 10);
    assert_eq!(cache.stats().stale_hits, 0);
    clock.advance(MS);
    assert_eq!(cache.get(&1), Some(10));
    assert_eq!(cache.stats().stale_hits, 1);
    let mut others = 0;
    let loaded = cache.get_or_load(1, || {
        // Meanwhile, also on this very thread.
        for _ in 0..3 {
            others += cache.get_or_load(1, unreached);
        }
        11_u64
    });
    assert_eq!((loaded, others), (11, 30));
    assert_eq!(cache.ttl(&1), Ttl::Left(100 * MS));
    assert_eq!(cache.stats().loads, 1);
    clock.advance(100 * MS);
    // The hard deadline: nothing is served.
    assert_eq!(cache.get(&1), None);
    assert_eq!(cache.get_or_load(1, || 12_u64), 12);
}

#[test]
fn a_full_queue_skips_and_a_failed_or_panicking_refresh_keeps_the_old_value() {
    let clock = ManualClock::new();
    let cache = manual(&clock)
        .error_backoff(Duration::ZERO)
        .refresh_after(0.5)
        .refresh_queue(2)
        .refresh_with(|key: &u64| match key {
            1 => std::panic::resume_unwind(Box::new("refresher")),
            _ => Err::<u64, _>(Failure(1)),
        })
        .valid();
    for key in 1..=3 {
        cache.insert(key, key * 10);
    }
    clock.advance(50 * MS);
    for key in 1..=3 {
        assert_eq!(cache.get(&key), Some(key * 10));
    }
    assert_eq!(cache.stats().refreshes_skipped, 1);
    assert_eq!(cache.run_refreshes(1), 1);
    assert_eq!(cache.run_refreshes(9), 1);
    assert_eq!((cache.stats().loads, cache.stats().load_errors), (2, 2));
    assert_eq!(cache.get(&1), Some(10));
    assert_eq!(cache.get(&2), Some(20));
    // They are tried again after half of the time that was left.
    assert_eq!(cache.run_refreshes(9), 0);
    clock.advance(25 * MS);
    assert_eq!((cache.get(&1), cache.get(&2)), (Some(10), Some(20)));
    assert_eq!(cache.run_refreshes(9), 2);
    clock.advance(25 * MS);
    assert_eq!(cache.get(&2), None);
}

/// The call waited for the closure, and then found that there was nothing to change.
#[test]
fn a_change_of_an_end_that_changes_nothing_waits_for_no_closure() {
    let clock = ManualClock::new();
    let cache = manual(&clock).valid();
    cache.insert(1, 10);
    let updated = cache.update(&1, |old| {
        assert!(!cache.expire(&1, 500 * MS, Condition::IfEarlier));
        old + 1
    });
    assert_eq!(updated, Some(11));
}

/// Those who came after the invalidation waited for the load that began before it, and got its
/// value.
#[test]
fn who_comes_after_an_invalidation_is_not_answered_by_the_reload_that_it_overtook() {
    let clock = ManualClock::new();
    let cache = manual(&clock).refresh_after(0.5).valid();
    cache.insert_with(1, 1, Lifetime::configured().tag("a"));
    clock.advance(60 * MS);
    let go = AtomicBool::new(false);
    let mut leader = Box::pin(cache.get_or_load_async(1, async {
        flagged(&go).await;
        2_u64
    }));
    let alarm = Alarm::new();
    assert!(poll(leader.as_mut(), &alarm).is_pending());
    assert_eq!(cache.get(&1), Some(1), "stale");
    assert!(cache.invalidate_tag("a"));
    let mut later = Box::pin(cache.get_or_load_async(1, async { 3_u64 }));
    assert!(poll(later.as_mut(), &alarm).is_pending());
    go.store(true, SeqCst);
    assert_eq!(poll(leader.as_mut(), &alarm), Poll::Ready(2));
    assert_eq!(poll(later.as_mut(), &alarm), Poll::Ready(3));
    assert_eq!(cache.get(&1), Some(3));
}
