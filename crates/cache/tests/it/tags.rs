//! Entries that are invalidated by their tags: invisible at once, removed by the driver.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Builder, Cache, Driver, Lifetime, ManualClock, RemovalCause, Ttl};

const MS: Duration = Duration::from_millis(1);

fn manual() -> Builder<u64, u64> {
    Cache::builder()
        .max_capacity(100_000)
        .no_default_ttl()
        .clock(ManualClock::new())
        .driver(Driver::Manual)
}

fn drive(cache: &Cache<u64, u64>) {
    while cache.advance(cache.now(), 100).backlog {}
}

#[test]
fn entries_with_the_tag_are_invisible_at_once_and_others_stay() {
    let cache = manual().build().expect("valid");
    for key in 0..1000 {
        let user = format!("user:{}", key % 10);
        cache.insert_with(key, key, Lifetime::ttl(1000 * MS).tag(user).tag("page"));
    }
    cache.insert(5000, 1);
    assert!(cache.invalidate_tag("user:3"));
    assert!(!cache.invalidate_tag("user:77"));
    for key in 0..1000 {
        let there = key % 10 != 3;
        assert_eq!(cache.peek(&key).is_some(), there, "{key}");
        assert_eq!(cache.contains_key(&key), there);
        assert_eq!(cache.ttl(&key) == Ttl::Missing, !there);
    }
    assert_eq!(cache.len(), 1001);
    assert_eq!(cache.get(&3), None);
    assert_eq!(cache.len(), 1000, "a reader that meets one removes it");
    drive(&cache);
    assert_eq!(cache.len(), 901);
    assert!(cache.invalidate_tag("page"));
    assert_eq!(cache.get(&1), None);
    drive(&cache);
    assert_eq!((cache.len(), cache.get(&5000)), (1, Some(1)));
    assert!(!cache.invalidate_tag("page"), "nobody has the tag any more");
    cache.validate();
}

#[test]
fn an_entry_that_is_stored_again_is_visible_again() {
    let cache = manual().build().expect("valid");
    cache.insert_with(1, 1, Lifetime::forever().tag("a"));
    cache.invalidate_tag("a");
    cache.insert_with(1, 2, Lifetime::forever().tag("a"));
    assert_eq!(cache.get(&1), Some(2));
    drive(&cache);
    assert_eq!(cache.get(&1), Some(2));
    cache.invalidate_tag("a");
    assert_eq!(cache.remove(&1), None);
    cache.insert(1, 3);
    assert!(!cache.invalidate_tag("a"));
    assert_eq!(cache.get(&1), Some(3));
    cache.validate();
}

#[test]
fn the_listener_is_told_of_invalidation_once_for_each_entry() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let cache = manual()
        .eviction_listener(move |removal| {
            seen.lock()
                .expect("unpoisoned")
                .push((removal.key, removal.cause));
        })
        .build()
        .expect("valid");
    for key in 0..500 {
        cache.insert_with(key, key, Lifetime::forever().tag("a"));
    }
    cache.invalidate_tag("a");
    // Writers that meet an invalidated entry report it too.
    cache.insert(0, 1);
    assert_eq!(cache.remove(&1), None);
    drive(&cache);
    let mut events = events.lock().expect("unpoisoned").clone();
    events.sort_unstable_by_key(|(key, _)| *key);
    let expected: Vec<_> = (0..500)
        .map(|key| (key, RemovalCause::Invalidated))
        .collect();
    assert_eq!(events, expected);
    assert_eq!(cache.len(), 1);
    cache.validate();
}

#[test]
fn a_sweep_keeps_to_its_budget() {
    let cache = manual().shards(1).build().expect("valid");
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

#[test]
fn the_thread_removes_invalidated_entries_though_nobody_calls() {
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(100_000)
        .no_default_ttl()
        .build()
        .expect("valid");
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

#[test]
fn clearing_forgets_the_tags_of_what_was_there() {
    let cache = manual().build().expect("valid");
    for key in 0..5000 {
        cache.insert_with(key, key, Lifetime::forever().tag(format!("{key}")));
    }
    cache.invalidate_all();
    cache.validate();
    assert!(!cache.invalidate_tag("7"));
    for key in 0..100 {
        cache.insert_with(key, key, Lifetime::ttl(MS).tag("a").tag("b").tag("c"));
    }
    cache.close();
    cache.insert_with(1, 1, Lifetime::forever().tag("a"));
    cache.validate();
    assert!(!cache.invalidate_tag("a"));
}

#[test]
fn what_was_stored_before_an_invalidation_never_comes_back_under_concurrency() {
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(100)
        .no_default_ttl()
        .build()
        .expect("valid");
    std::thread::scope(|scope| {
        for writer in 0..2u64 {
            let cache = &cache;
            scope.spawn(move || {
                let tag = format!("writer:{writer}");
                for value in 0..20_000 {
                    let key = writer * 1000 + value % 150;
                    let lifetime = Lifetime::ttl(5 * MS).tag(tag.as_str()).tag("all");
                    cache.insert_with(key, value, lifetime);
                    if value % 16 == 0 {
                        cache.invalidate_tag(&tag);
                        assert_eq!(cache.get(&key), None);
                    }
                    if value % 64 == 0 {
                        cache.invalidate_tag("all");
                    }
                }
            });
        }
    });
    cache.invalidate_tag("all");
    assert!((0..2000).all(|key| cache.get(&key).is_none()));
    cache.validate();
}
