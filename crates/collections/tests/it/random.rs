//! How evenly random members are chosen.

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

/// The sum of squared distances from even, which is about the number of members if all are equally likely.
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
