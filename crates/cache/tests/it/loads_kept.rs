//! Loads leave errors and absences that are remembered, old values that are served, and refreshes.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tidewheel::{Cache, Condition, Lifetime, Loaded, ManualClock, RemovalCause, Ttl};

use crate::loading::{Failure, MS, manual, unreached};

#[test]
fn errors_and_absences_are_remembered_for_the_negative_ttl() {
    let clock = ManualClock::new();
    let cache = manual(&clock).negative_ttl(10 * MS).build().expect("valid");
    let absent = || cache.optionally_get_or_load(1, || None::<u64>);
    assert_eq!(absent(), None);
    clock.advance(9 * MS);
    assert_eq!(cache.optionally_get_or_load(1, || Some(unreached())), None);
    assert_eq!(cache.next_deadline(), Some(MS));
    clock.advance(MS);
    assert_eq!(cache.optionally_get_or_load(1, || Some(5_u64)), Some(5));

    let fail = |number| cache.try_get_or_load(2, || Err::<u64, _>(Failure(number)));
    assert_eq!(*fail(1).expect_err("a failure"), Failure(1));
    assert_eq!(*fail(2).expect_err("remembered"), Failure(1));
    // It does not answer those who cannot fail so.
    assert_eq!(cache.get(&2), None);
    assert_eq!(cache.get_or_load(2, || 6_u64), 6);
    assert_eq!(cache.remove(&2), Some(6));
    assert_eq!(*fail(3).expect_err("a failure"), Failure(3));
    assert_eq!(*fail(4).expect_err("remembered"), Failure(3));
    // An insertion or removal of the key forgets it.
    assert!(!cache.invalidate(&2));
    assert_eq!(*fail(5).expect_err("a failure"), Failure(5));
    cache.insert(2, 7);
    assert_eq!(fail(6), Ok(7));
    cache.remove(&2);
    assert_eq!(*fail(7).expect_err("a failure"), Failure(7));
    cache.invalidate_all();
    assert_eq!(*fail(8).expect_err("a failure"), Failure(8));
    clock.advance(10 * MS);
    cache.advance(cache.now(), u32::MAX);
    assert_eq!(cache.next_deadline(), None);
    cache.validate();
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
    let cache = manual(&clock)
        .shards(1)
        .negative_ttl(10 * MS)
        .build()
        .expect("valid");
    let alive = Arc::new(AtomicUsize::new(0));
    for key in 0..5000 {
        alive.fetch_add(1, SeqCst);
        let error = Counted(Arc::clone(&alive));
        assert!(cache.try_get_or_load(key, || Err::<u64, _>(error)).is_err());
    }
    assert_eq!(alive.load(SeqCst), 1024);
    clock.advance(10 * MS);
    let mut turns = 0;
    while cache.advance(cache.now(), 100).backlog {
        turns += 1;
    }
    assert!(turns >= 5, "in budgets: {turns}");
    assert_eq!(alive.load(SeqCst), 0);
}

#[test]
fn past_the_soft_deadline_one_caller_loads_and_the_others_get_the_old_value() {
    let clock = ManualClock::new();
    let cache = manual(&clock).refresh_after(0.8).build().expect("valid");
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
fn a_loaders_lifetime_and_soft_deadline_are_its_entrys_own() {
    let clock = ManualClock::new();
    let cache = manual(&clock).build().expect("valid");
    let lifetime = Lifetime::ttl(50 * MS).fresh_for(20 * MS);
    cache.fetch(1).load_with(|| Loaded::new(10_u64, lifetime));
    assert_eq!(cache.ttl(&1), Ttl::Left(50 * MS));
    clock.advance(20 * MS);
    assert_eq!(cache.get_or_load(1, || 11_u64), 11);
}

#[test]
fn a_failing_refresh_is_answered_by_the_old_value_and_tried_again_at_half_the_time_left() {
    let clock = ManualClock::new();
    let cache = manual(&clock)
        .error_backoff(Duration::ZERO)
        .refresh_after(0.5)
        .build()
        .expect("valid");
    cache.insert(1, 10);
    clock.advance(60 * MS);
    let loads = AtomicUsize::new(0);
    let fail = || {
        cache.try_get_or_load(1, || {
            loads.fetch_add(1, SeqCst);
            Err::<u64, _>(Failure(1))
        })
    };
    assert_eq!(fail(), Ok(10));
    assert_eq!(fail(), Ok(10));
    assert_eq!(loads.load(SeqCst), 1);
    clock.advance(20 * MS);
    assert_eq!(fail(), Ok(10));
    assert_eq!(loads.load(SeqCst), 2);
    clock.advance(20 * MS);
    assert_eq!(*fail().expect_err("it is over"), Failure(1));
}

#[test]
fn the_old_value_is_served_in_place_of_an_error_up_to_the_limit() {
    let clock = ManualClock::new();
    let removed = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&removed);
    let cache = manual(&clock)
        .error_backoff(Duration::ZERO)
        .stale_on_error(50 * MS)
        .eviction_listener(move |removal| {
            seen.lock()
                .expect("whole")
                .push((removal.key, removal.cause));
        })
        .build()
        .expect("valid");
    let fail = || cache.try_get_or_load(1, || Err::<u64, _>(Failure(1)));
    cache.insert(1, 10);
    clock.advance(100 * MS);
    cache.advance(cache.now(), u32::MAX);
    assert_eq!(cache.get(&1), None, "lookups do not see it");
    assert_eq!(fail(), Ok(10));
    clock.advance(49 * MS);
    cache.advance(cache.now(), u32::MAX);
    assert_eq!(fail(), Ok(10));
    assert_eq!(cache.stats().stale_hits, 2);
    assert_eq!(cache.stats().load_errors, 2);
    clock.advance(MS);
    assert_eq!(*fail().expect_err("the limit"), Failure(1));
    cache.advance(cache.now(), u32::MAX);
    assert_eq!(
        *removed.lock().expect("whole"),
        [(1, RemovalCause::Expired)]
    );
    // Removed by hand, it does not come back.
    cache.insert(1, 11);
    clock.advance(100 * MS);
    cache.invalidate(&1);
    assert!(fail().is_err());
    cache.validate();
}

#[test]
fn with_a_remembered_error_the_stale_value_needs_no_further_load() {
    let clock = ManualClock::new();
    let cache = manual(&clock)
        .stale_on_error(50 * MS)
        .negative_ttl(10 * MS)
        .build()
        .expect("valid");
    cache.insert(1, 10);
    clock.advance(100 * MS);
    let fail = || cache.try_get_or_load(1, || Err::<u64, _>(Failure(1)));
    for _ in 0..5 {
        assert_eq!(fail(), Ok(10));
    }
    assert_eq!(cache.stats().loads, 1);
    assert_eq!(cache.stats().stale_hits, 5);
}

#[test]
fn an_absence_removes_the_old_value() {
    let clock = ManualClock::new();
    let cache = manual(&clock).refresh_after(0.5).build().expect("valid");
    cache.insert(1, 10);
    clock.advance(50 * MS);
    assert_eq!(cache.optionally_get_or_load(1, || None::<u64>), None);
    assert_eq!(cache.peek(&1), None);
}

#[test]
fn a_read_past_the_soft_deadline_queues_one_refresh() {
    let clock = ManualClock::new();
    let origin = Arc::new(AtomicUsize::new(0));
    let hits = Arc::clone(&origin);
    let cache = manual(&clock)
        .refresh_after(0.5)
        .refresh_with(move |key: &u64| {
            hits.fetch_add(1, SeqCst);
            Ok::<u64, Infallible>(key * 100)
        })
        .build()
        .expect("valid");
    cache.insert(1, 10);
    cache.insert(2, 20);
    assert_eq!(cache.run_refreshes(10), 0);
    clock.advance(50 * MS);
    assert_eq!(cache.run_refreshes(10), 0, "nobody has read");
    for _ in 0..5 {
        assert_eq!(cache.get(&1), Some(10));
        assert_eq!(cache.get_or_load(1, unreached), 10);
    }
    assert_eq!(cache.run_refreshes(10), 1);
    assert_eq!(cache.get(&1), Some(100));
    assert_eq!(cache.ttl(&1), Ttl::Left(100 * MS));
    assert_eq!(origin.load(SeqCst), 1);
    // An entry that nobody reads expires.
    clock.advance(50 * MS);
    assert_eq!(cache.get(&2), None);
    cache.validate();
}

#[test]
fn a_queued_refresh_is_superseded_by_a_writer_and_taken_over_by_a_caller() {
    let clock = ManualClock::new();
    let origin = Arc::new(AtomicUsize::new(0));
    let hits = Arc::clone(&origin);
    let cache = manual(&clock)
        .refresh_after(0.5)
        .refresh_with(move |_: &u64| {
            hits.fetch_add(1, SeqCst);
            Ok::<u64, Infallible>(1)
        })
        .build()
        .expect("valid");
    cache.insert(1, 10);
    clock.advance(60 * MS);
    assert_eq!(cache.get(&1), Some(10));
    cache.insert(1, 11);
    assert_eq!(cache.run_refreshes(10), 1);
    assert_eq!((cache.get(&1), origin.load(SeqCst)), (Some(11), 0));
    clock.advance(60 * MS);
    assert_eq!(cache.get(&1), Some(11));
    clock.advance(40 * MS);
    // It is over before its turn has come: the caller loads.
    assert_eq!(cache.get_or_load(1, || 12_u64), 12);
    assert_eq!(cache.run_refreshes(10), 1);
    assert_eq!((cache.get(&1), origin.load(SeqCst)), (Some(12), 0));
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
        .build()
        .expect("valid");
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

/// When the weigher panicked, every read asked the origin again.
#[test]
fn a_refreshed_value_that_cannot_be_weighed_is_tried_again_later_only() {
    let clock = ManualClock::new();
    let loads = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&loads);
    let cache = manual(&clock)
        .error_backoff(Duration::ZERO)
        .refresh_after(0.5)
        .weigher(|_, value| {
            assert_ne!(*value, 13, "bang");
            1
        })
        .refresh_with(move |_: &u64| {
            count.fetch_add(1, SeqCst);
            Ok::<u64, Infallible>(13)
        })
        .build()
        .expect("valid");
    cache.insert(1, 10);
    clock.advance(60 * MS);
    for _ in 0..5 {
        assert_eq!(cache.get(&1), Some(10));
        cache.run_refreshes(10);
    }
    assert_eq!(loads.load(SeqCst), 1);
    clock.advance(20 * MS);
    assert_eq!(cache.get(&1), Some(10));
    assert_eq!(
        cache.run_refreshes(10),
        1,
        "half of what was left has passed"
    );
}

/// Calls that change a time to live superseded the load, even if they changed nothing.
#[test]
fn a_change_of_an_end_that_changes_nothing_leaves_a_running_load_alone() {
    let clock = ManualClock::new();
    let cache = manual(&clock).refresh_after(0.5).build().expect("valid");
    type Idle = fn(&Cache<u64, u64>) -> bool;
    let idle: [Idle; 6] = [
        |cache| cache.expire(&1, 5 * MS, Condition::IfNone),
        |cache| cache.expire(&1, 500 * MS, Condition::IfEarlier),
        |cache| cache.expire_at(&1, SystemTime::UNIX_EPOCH, Condition::IfLater),
        |cache| cache.expire(&9, 5 * MS, Condition::Always),
        |cache| cache.persist(&9),
        |cache| cache.remove_if(&1, |value| *value == 99),
    ];
    for idle in idle {
        cache.insert(1, 10);
        clock.advance(60 * MS);
        let loaded = cache.get_or_load(1, || {
            assert!(!idle(&cache));
            11_u64
        });
        assert_eq!((loaded, cache.peek(&1)), (11, Some(11)), "it is stored");
        let loaded = cache.get_or_load(9, || {
            assert!(!idle(&cache));
            90_u64
        });
        assert_eq!((loaded, cache.remove(&9)), (90, Some(90)));
    }
    // One that does change something overtakes the load, which does not undo it.
    cache.insert(1, 10);
    clock.advance(60 * MS);
    let loaded = cache.get_or_load(1, || {
        assert!(cache.expire(&1, 500 * MS, Condition::Always));
        11_u64
    });
    assert_eq!((loaded, cache.peek(&1)), (11, Some(10)));
    assert_eq!(cache.ttl(&1), Ttl::Left(500 * MS));
}

#[test]
fn a_removal_by_an_old_version_leaves_a_running_load_alone() {
    let clock = ManualClock::new();
    let cache = manual(&clock).refresh_after(0.5).build().expect("valid");
    cache.insert(1, 10);
    let old = cache.version(&1).expect("it is there");
    cache.insert(1, 11);
    clock.advance(60 * MS);
    let loaded = cache.get_or_load(1, || {
        assert!(!cache.remove_version(&1, old));
        12_u64
    });
    assert_eq!((loaded, cache.peek(&1)), (12, Some(12)));
}

#[test]
fn a_change_of_an_end_that_changes_nothing_forgets_no_remembered_answer() {
    let clock = ManualClock::new();
    let cache = manual(&clock).negative_ttl(50 * MS).build().expect("valid");
    let absent = |known: bool| {
        let found = cache.optionally_get_or_load(1, || {
            assert!(!known, "the absence is remembered");
            None::<u64>
        });
        assert_eq!(found, None);
    };
    absent(false);
    assert!(!cache.expire(&1, MS, Condition::Always));
    absent(true);
    assert!(!cache.persist(&1));
    absent(true);
    assert!(!cache.expire_at(&1, SystemTime::UNIX_EPOCH, Condition::Always));
    absent(true);
    assert!(!cache.touch(&1));
    absent(true);
}

/// The call waited for the closure, and then found that there was nothing to change.
#[test]
fn a_change_of_an_end_that_changes_nothing_waits_for_no_closure() {
    let clock = ManualClock::new();
    let cache = manual(&clock).build().expect("valid");
    cache.insert(1, 10);
    let updated = cache.update(&1, |old| {
        assert!(!cache.expire(&1, 500 * MS, Condition::IfEarlier));
        old + 1
    });
    assert_eq!(updated, Some(11));
}

#[cfg(feature = "system")]
#[test]
fn the_refreshers_thread_loads_in_the_background_and_ends_with_the_cache() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(10)
        .time_to_live(100 * MS)
        .refresh_after(0.5)
        .clock(clock.clone())
        .refresh_with(|key: &u64| Ok::<u64, Infallible>(key + 1))
        .build()
        .expect("valid");
    cache.insert(1, 10);
    clock.advance(50 * MS);
    assert_eq!(cache.get(&1), Some(10));
    crate::loading::until("the refresh is done", || cache.peek(&1) == Some(2));
    clock.advance(60 * MS);
    assert_eq!(cache.get(&1), Some(2));
    cache.close();
}

/// The remembered error of a stale entry's loader outlived the entry. Later loads were answered
/// with the error.
#[test]
fn every_removal_of_an_entry_forgets_the_error_that_its_loader_left() {
    type Remove = fn(&Cache<u64, u64>);
    let ways: [Remove; 4] = [
        |cache| assert!(cache.invalidate(&1)),
        |cache| assert!(cache.remove_if(&1, |_| true)),
        |cache| assert_eq!(cache.invalidate_if(|_, _| true), 1),
        |cache| cache.invalidate_all(),
    ];
    for (way, remove) in ways.into_iter().enumerate() {
        let clock = ManualClock::new();
        let cache = manual(&clock).negative_ttl(50 * MS).build().expect("valid");
        cache.insert_with(1, 7, Lifetime::ttl(90 * MS).fresh_for(10 * MS));
        clock.advance(20 * MS);
        let failed = cache.try_get_or_load(1, || Err::<u64, _>(Failure(1)));
        assert_eq!(failed, Ok(7), "the old value in place of the error");
        remove(&cache);
        let loaded = cache.try_get_or_load(1, || Ok::<u64, Failure>(8));
        assert_eq!(loaded, Ok(8), "way {way}");
    }
}
