//! Random members are chosen evenly.

use std::collections::HashMap;

use tidewheel_collections::{Change, Limits, NewDeadline, Set};
use tidewheel_store::KeyHasher;

fn set_of(members: usize, entries: usize) -> Set {
    let hasher = KeyHasher::new(11);
    let limits = Limits {
        entries,
        value: 64,
        integers: entries,
    };
    let change = Change {
        now: 0,
        limits,
        hasher: &hasher,
    };
    let mut set = Set::new();
    for i in 0..members {
        set.insert(format!("m{i}").as_bytes(), NewDeadline::None, &change);
    }
    set
}

fn bits() -> impl FnMut() -> u64 {
    let mut state = 42u64;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) ^ mixed >> 31
    }
}

/// The sum of squared distances from even, which is about the number of members if all are equally
/// likely.
fn unevenness(met: &HashMap<Vec<u8>, u32>, members: usize, draws: u32) -> f64 {
    let even = f64::from(draws) / members as f64;
    let squares = met
        .values()
        .map(|met| (f64::from(*met) - even).powi(2) / even);
    squares.sum::<f64>() + (members - met.len()) as f64 * even
}

fn check(members: usize, entries: usize, allowed: f64) {
    let set = set_of(members, entries);
    let mut bits = bits();
    let draws = members as u32 * 100;
    let mut met = HashMap::new();
    for _ in 0..draws {
        let entry = set.get().random(bits()).expect("it has members");
        *met.entry(entry.key.to_vec()).or_insert(0) += 1;
    }
    let uneven = unevenness(&met, members, draws) / members as f64;
    assert!(uneven < allowed, "{members} members: {uneven}");
}

#[test]
fn members_are_chosen_evenly() {
    check(100, 128, 1.5);
    check(64, 8, 1.6);
    check(1_000, 8, 1.2);
    // More than one segment of the index: each has its share of the hashes, not of the members.
    check(20_000, 8, 1.5);
}

#[test]
fn members_are_chosen_evenly_when_several_different_ones_are() {
    for (members, entries, count) in [(100, 128, 10), (100, 8, 10), (100, 8, 60)] {
        let set = set_of(members, entries);
        let mut bits = bits();
        let mut met = HashMap::new();
        for _ in 0..1_000 {
            set.get().random_distinct(count, &mut bits, |entry| {
                *met.entry(entry.key.to_vec()).or_insert(0) += 1;
            });
        }
        let uneven = unevenness(&met, members, 1_000 * count as u32) / members as f64;
        assert!(uneven < 1.6, "{count} of {members}: {uneven}");
    }
}

/// A source of bits that is stuck must not keep the caller for ever.
#[test]
fn different_members_are_chosen_even_from_bits_that_are_not_random() {
    let set = set_of(1_000, 8);
    let mut met = 0;
    set.get().random_distinct(300, || 7, |_| met += 1);
    assert_eq!(met, 300);
}

#[test]
fn members_that_are_popped_together_are_chosen_evenly_and_leave() {
    for (members, entries, count) in [(100, 128, 90), (100, 8, 30), (100, 8, 83), (100, 8, 90)] {
        let mut bits = bits();
        let mut met = HashMap::new();
        for _ in 0..1_000 {
            let mut set = set_of(members, entries);
            set.pop_many(count, 0, &mut bits, |entry| {
                *met.entry(entry.key.to_vec()).or_insert(0) += 1;
            });
            set.get().validate();
            assert_eq!(set.get().len(), members - count);
        }
        assert_eq!(met.values().sum::<u32>(), 1_000 * count as u32);
        let uneven = unevenness(&met, members, 1_000 * count as u32) / members as f64;
        assert!(uneven < 1.6, "{count} of {members}: {uneven}");
    }
}

#[test]
fn members_that_stay_when_nearly_all_are_popped_keep_their_deadlines() {
    let mut set = set_of(1_000, 8);
    for i in 0..1_000 {
        set.set_deadline(format!("m{i}").as_bytes(), Some(1_000 + i), 0);
    }
    set.pop_many(990, 5, bits(), |entry| {
        let number: u64 = String::from_utf8_lossy(&entry.key[1..])
            .parse()
            .expect("a number");
        assert_eq!(entry.deadline, Some(1_000 + number));
    });
    let mut left = Vec::new();
    set.get()
        .for_each(|entry| left.push((entry.key.to_vec(), entry.deadline)));
    assert_eq!(left.len(), 10);
    for (key, deadline) in left {
        let number: u64 = String::from_utf8_lossy(&key[1..])
            .parse()
            .expect("a number");
        assert_eq!(deadline, Some(1_000 + number));
    }
    set.get().validate();
    assert!(set.get().next_deadline().is_some());
    set.expire(10_000, u32::MAX, |_| {});
    assert!(set.get().is_empty());
    let mut set = set_of(500, 8);
    set.pop_many(usize::MAX, 0, bits(), |_| {});
    assert!(set.get().is_empty());
}
