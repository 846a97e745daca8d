//! Versions: compare-and-set, insert-if-absent, conditional removal.

use tidewheel::{Cache, CompareError, Lifetime, ManualClock, Version};

use crate::loading::{MS, manual};

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
