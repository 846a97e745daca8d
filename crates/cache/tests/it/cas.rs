//! Versions: compare-and-set, insert-if-absent, conditional removal; pinning.

use std::time::Duration;

use tidewheel::{Cache, CompareError, Condition, Lifetime, ManualClock, Ttl, Version};

const MS: Duration = Duration::from_millis(1);

use super::setups::manual;

#[test]
fn a_value_is_replaced_only_while_it_has_the_version_that_was_read() {
    let cache = manual(&ManualClock::new()).build().expect("valid");
    let nobody = cache.version(&1);
    assert_eq!(nobody, None);
    cache.insert(1, 10);
    let (value, first) = cache.get_with_version(&1).expect("there");
    assert_eq!(value, 10);
    assert_eq!(cache.version(&1), Some(first), "reading changes nothing");
    let second = cache.compare_and_set(1, first, 11).expect("unchanged");
    assert_eq!(cache.version(&1), Some(second));
    let late = cache.compare_and_set(1, first, 12);
    assert_eq!(late, Err(CompareError::Changed(second)));
    assert_eq!(cache.get(&1), Some(11));
    cache.insert(1, 13);
    assert_ne!(cache.version(&1), Some(second));
    cache.remove(&1);
    let gone = cache.compare_and_set(1, second, 14);
    assert_eq!(gone, Err(CompareError::Missing));
    cache.validate();
}

#[test]
fn no_version_comes_back() {
    let clock = ManualClock::new();
    let cache = manual(&clock).shards(1).build().expect("valid");
    let mut seen: Vec<Version> = Vec::new();
    for round in 0..50u64 {
        cache.insert(1, round);
        let version = cache.version(&1).expect("there");
        assert!(!seen.contains(&version), "{round}");
        seen.push(version);
        match round % 5 {
            0 => drop(cache.remove(&1)),
            1 => cache.invalidate_all(),
            2 => {
                clock.advance(101 * MS);
                cache.advance(cache.now(), 100);
            }
            3 => clock.advance(101 * MS),
            _ => {}
        }
        cache.insert(2, round);
        let other = cache.version(&2).expect("there");
        assert!(!seen.contains(&other), "{round}");
        seen.push(other);
    }
    cache.validate();
}

#[test]
fn the_time_to_live_stays_unless_another_is_given() {
    let clock = ManualClock::new();
    let cache = manual(&clock).build().expect("valid");
    cache.insert_with(1, 1, Lifetime::ttl(50 * MS).tag("a"));
    clock.advance(20 * MS);
    let version = cache.version(&1).expect("there");
    let version = cache.compare_and_set(1, version, 2).expect("unchanged");
    assert_eq!(cache.ttl(&1), Ttl::Left(30 * MS));
    let version = cache
        .compare_and_set_with(1, version, 3, Lifetime::ttl(70 * MS).tag("b"))
        .expect("unchanged");
    assert_eq!(cache.ttl(&1), Ttl::Left(70 * MS));
    assert!(!cache.invalidate_tag("a"), "nothing has it any more");
    cache.compare_and_set(1, version, 4).expect("unchanged");
    cache.validate();
    assert!(cache.invalidate_tag("b"), "the tag stays as the time does");
    assert_eq!(cache.get(&1), None);
    cache.validate();
}

#[test]
fn a_value_that_is_too_heavy_leaves_the_old_one() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> = manual(&clock)
        .weigher(|_, value| u32::try_from(*value).unwrap_or(u32::MAX))
        .build()
        .expect("valid");
    cache.insert(1, 10);
    let version = cache.version(&1).expect("there");
    let heavy = cache.compare_and_set(1, version, 1001);
    assert_eq!(heavy, Err(CompareError::TooHeavy));
    assert_eq!((cache.get(&1), cache.weight()), (Some(10), 10));
    assert!(cache.compare_and_set(1, version, 1000).is_ok());
    assert_eq!(cache.weight(), 1000);
    let lifetime = Lifetime::ttl(MS).tag("a");
    assert!(!cache.insert_if_absent_with(2, 1001, lifetime));
    cache.validate();
}

#[test]
fn counting_by_compare_and_set_loses_nothing() {
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(1000)
        .no_default_ttl()
        .build()
        .expect("valid");
    cache.insert(7, 0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    loop {
                        let (value, version) = cache.get_with_version(&7).expect("there");
                        match cache.compare_and_set(7, version, value + 1) {
                            Ok(_) => break,
                            Err(CompareError::Changed(_)) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(cache.get(&7), Some(8000));
}

#[test]
fn of_many_threads_only_one_inserts_an_absent_key() {
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(100_000)
        .no_default_ttl()
        .build()
        .expect("valid");
    let won: usize = std::thread::scope(|scope| {
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
fn a_dead_entry_is_absent() {
    let clock = ManualClock::new();
    let cache = manual(&clock).build().expect("valid");
    assert!(cache.insert_if_absent(1, 1));
    assert!(!cache.insert_if_absent(1, 2));
    let version = cache.version(&1).expect("there");
    clock.advance(100 * MS);
    assert_eq!(cache.version(&1), None);
    assert!(!cache.remove_version(&1, version));
    let late = cache.compare_and_set(1, version, 5);
    assert_eq!(late, Err(CompareError::Missing));
    assert!(cache.insert_if_absent(1, 3));
    assert_eq!(cache.get(&1), Some(3));
    cache.validate();
}

#[test]
fn a_key_is_removed_only_if_its_value_is_as_expected() {
    let cache = manual(&ManualClock::new()).build().expect("valid");
    cache.insert(1, 10);
    assert!(!cache.remove_if(&1, |value| *value > 10));
    assert!(!cache.remove_if(&2, |_| true));
    let version = cache.version(&1).expect("there");
    cache.insert(1, 11);
    assert!(!cache.remove_version(&1, version));
    assert!(cache.remove_if(&1, |value| *value > 10));
    assert!(cache.is_empty());
    cache.insert(1, 12);
    let version = cache.version(&1).expect("there");
    assert!(cache.remove_version(&1, version));
    assert!(cache.is_empty());
    cache.validate();
}

#[test]
fn pinned_entries_are_not_evicted_but_expire() {
    let clock = ManualClock::new();
    let cache = manual(&clock).max_capacity(10).build().expect("valid");
    assert!(!cache.pin(&1));
    cache.insert(1, 1);
    assert!(cache.pin(&1) && cache.is_pinned(&1));
    for key in 100..1000 {
        cache.insert(key, key);
    }
    assert!(cache.contains_key(&1) && cache.len() <= 10);
    cache.insert(1, 2);
    assert!(cache.is_pinned(&1), "a new value keeps the pin");
    clock.advance(99 * MS);
    assert_eq!(cache.peek(&1), Some(2));
    clock.advance(MS);
    cache.advance(cache.now(), 1000);
    assert!(!cache.is_pinned(&1) && cache.is_empty());
    cache.insert(1, 3);
    assert!(!cache.is_pinned(&1), "another entry begins unpinned");
    cache.pin(&1);
    assert!(cache.unpin(&1) && !cache.is_pinned(&1));
    for key in 100..1000 {
        cache.insert(key, key);
    }
    assert!(!cache.contains_key(&1));
    assert!(!cache.expire(&1, MS, Condition::Always));
    cache.validate();
}
