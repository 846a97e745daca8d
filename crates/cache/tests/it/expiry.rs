//! Entries cease to be visible at their deadline, and are gone a tick later.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Cache, Condition, Driver, Lifetime, ManualClock, RemovalCause, Ttl};

const MS: Duration = Duration::from_millis(1);

fn manual(clock: &ManualClock) -> tidewheel::Builder<u64, u64> {
    Cache::builder()
        .max_capacity(1000)
        .time_to_live(Duration::from_secs(1))
        .clock(clock.clone())
        .driver(Driver::Manual)
}

#[test]
fn an_entry_is_visible_until_its_deadline_and_gone_after_the_next_pass() {
    let clock = ManualClock::new();
    let cache = manual(&clock).build().expect("valid");
    cache.insert(1, 10);
    cache.insert_with_ttl(2, 20, 10 * MS);
    clock.advance(9 * MS);
    assert_eq!(cache.get(&2), Some(20));
    assert_eq!(cache.ttl(&2), Ttl::Left(MS));
    clock.advance(MS);
    assert_eq!(cache.get(&2), None);
    assert_eq!(cache.len(), 2);
    let progress = cache.advance(cache.now(), 100);
    assert_eq!((progress.expired, cache.len()), (1, 1));
    let next = progress.next.expect("an entry is left");
    assert!(next > Duration::ZERO && next <= 990 * MS, "{next:?}");
    cache.validate();
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
fn deadlines_move_under_conditions() {
    let clock = ManualClock::new();
    let cache = manual(&clock).build().expect("valid");
    cache.insert(1, 10);
    assert!(!cache.expire(&1, 5 * MS, Condition::IfNone));
    assert!(!cache.expire(&1, 5 * MS, Condition::IfLater));
    assert!(cache.expire(&1, 5 * MS, Condition::IfEarlier));
    assert_eq!(cache.ttl(&1), Ttl::Left(5 * MS));
    assert!(cache.persist(&1));
    assert!(!cache.persist(&1));
    assert_eq!(cache.ttl(&1), Ttl::Forever);
    assert!(cache.expire(&1, 7 * MS, Condition::IfNone));
    clock.advance(7 * MS);
    assert_eq!(cache.ttl(&1), Ttl::Missing);
    cache.validate();
}

#[test]
fn every_read_of_an_idle_timed_entry_renews_it_up_to_its_time_to_live() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(1000)
        .time_to_live(100 * MS)
        .time_to_idle(30 * MS)
        .clock(clock.clone())
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    cache.insert(1, 1);
    cache.insert(2, 2);
    for _ in 0..4 {
        clock.advance(20 * MS);
        cache.advance(cache.now(), u32::MAX);
        assert_eq!(cache.get(&1), Some(1));
    }
    assert_eq!(cache.peek(&2), None);
    clock.advance(20 * MS);
    assert_eq!(cache.get(&1), None, "the time to live bounds the idle time");
    cache.advance(cache.now(), u32::MAX);
    assert_eq!(cache.len(), 0);
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
