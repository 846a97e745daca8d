//! Times to live, and the events that tell of their ends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Cache, Driver, Lifetime, ManualClock, RemovalCause, Ttl};

const MS: Duration = Duration::from_millis(1);

fn manual(clock: &ManualClock) -> tidewheel::Builder<u64, u64> {
    Cache::builder()
        .max_capacity(1000)
        .time_to_live(Duration::from_secs(1))
        .clock(clock.clone())
        .driver(Driver::Manual)
}

#[test]
fn a_time_to_live_may_have_begun_before_the_entry_is_stored() {
    let clock = ManualClock::new();
    clock.advance(7 * MS);
    let cache = manual(&clock).build().expect("valid");
    clock.advance(3 * MS);
    let asked = cache.now();
    clock.advance(30 * MS);
    cache.insert_with(1, 10, Lifetime::ttl_since(asked, 40 * MS));
    assert_eq!(cache.ttl(&1), Ttl::Left(10 * MS));
    cache.insert_with(2, 20, Lifetime::ttl_since(asked, 30 * MS));
    assert_eq!(cache.get(&2), None, "over before it was stored");
    cache.insert_with(3, 30, Lifetime::ttl_since(Duration::MAX, 5 * MS));
    assert_eq!(cache.ttl(&3), Ttl::Left(5 * MS), "not from a time to come");
    clock.advance(10 * MS);
    assert_eq!(cache.get(&1), None);
    cache.validate();
}

#[test]
fn the_thread_removes_entries_though_nobody_calls() {
    let gone = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&gone);
    let cache: Cache<u64, u64> = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .eviction_listener(move |removal| {
            seen.lock()
                .expect("unpoisoned")
                .push((removal.key, removal.cause, removal.lateness));
        })
        .build()
        .expect("valid");
    for key in 0..1000 {
        cache.insert_with_ttl(key, key, Duration::from_millis(20 + key % 50));
    }
    for _ in 0..500 {
        if cache.is_empty() && gone.lock().expect("unpoisoned").len() == 1000 {
            break;
        }
        std::thread::sleep(10 * MS);
    }
    assert_eq!(cache.len(), 0);
    let gone = gone.lock().expect("unpoisoned");
    assert_eq!(gone.len(), 1000);
    assert!(
        gone.iter()
            .all(|(_, cause, _)| *cause == RemovalCause::Expired)
    );
    cache.close();
}

#[test]
fn capacity_is_kept_and_events_tell_why() {
    let clock = ManualClock::new();
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let cache: Cache<u64, u64> = manual(&clock)
        .max_capacity(10)
        .eviction_listener(move |removal| {
            seen.lock()
                .expect("unpoisoned")
                .push((removal.key, removal.cause));
        })
        .build()
        .expect("valid");
    for key in 0..20 {
        cache.insert(key, key);
        assert!(cache.len() <= 10);
    }
    cache.insert(19, 1);
    cache.invalidate(&19);
    cache.advance(cache.now(), 1000);
    let events = events.lock().expect("unpoisoned");
    let count = |cause| events.iter().filter(|(_, c)| *c == cause).count();
    assert_eq!(count(RemovalCause::Evicted), 10);
    assert_eq!(count(RemovalCause::Replaced), 1);
    assert_eq!(count(RemovalCause::Removed), 1);
    cache.validate();
}

/// The grace period was added to each deadline, up to the latest one that fits. Readers subtract it
/// again, and so found every entry dead.
#[test]
fn an_endless_grace_period_ends_no_entry_early() {
    for grace in [Duration::MAX, Duration::from_secs(40 * 365 * 86_400)] {
        let clock = ManualClock::new();
        // To refuse it would be as good.
        let Ok(cache) = manual(&clock).stale_on_error(grace).build() else {
            continue;
        };
        cache.insert(1, 1);
        clock.advance(999 * MS);
        assert_eq!(cache.get(&1), Some(1), "dead before its time");
        clock.advance(MS);
        assert_eq!(cache.get(&1), None);
    }
}
