//! Keys with a deadline are found by way of their timers, however few they are.

use std::collections::{HashMap, HashSet};

use tidewheel_store::{KeyHasher, NewValue, Slot, Store};

const START: u64 = 1 << 40;

fn insert(store: &mut Store<()>, hasher: &KeyHasher, key: u32, deadline: Option<u64>) -> Slot {
    let bytes = key.to_le_bytes();
    let hash = hasher.hash(&bytes);
    store.insert(hash, &bytes, 0, NewValue::Inline(b"v"), deadline, START)
}

/// Some timers were cancelled, moved and swept. The walk meets every timer that is left, and no
/// other.
#[test]
fn steps_through_the_timer_records_meet_every_key_with_a_deadline() {
    let hasher = KeyHasher::new(3);
    let mut store = Store::new(hasher.clone());
    let mut wanted = HashSet::new();
    for key in 0..9_000 {
        let deadline = (key % 2 == 0).then_some(START + u64::from(key) * 977);
        let slot = insert(&mut store, &hasher, key, deadline);
        let slot = store.set_deadline(slot, deadline.map(|at| at + 70_000), START);
        if key % 10 == 0 {
            store.set_deadline(slot, None, START);
        } else if key % 2 == 0 {
            wanted.insert(key);
        }
    }
    let mut met = HashSet::new();
    for step in 0..40 {
        store.sample_timed(step * 32, 32, |slot| {
            assert!(store.deadline(slot).is_some());
            let key = store.key(slot).first_chunk().expect("four bytes");
            met.insert(u32::from_le_bytes(*key));
            true
        });
    }
    assert_eq!(met, wanted);
}

#[test]
fn a_walk_of_timers_ends_when_it_is_told_to_and_when_there_are_none() {
    let hasher = KeyHasher::new(3);
    let mut store = Store::new(hasher.clone());
    store.sample_timed(7, u32::MAX, |_| unreachable!("nothing has a deadline"));
    for key in 0..100 {
        insert(&mut store, &hasher, key, Some(START + 1));
    }
    let mut met = 0;
    store.sample_timed(u32::MAX, u32::MAX, |_| {
        met += 1;
        met < 5
    });
    assert_eq!(met, 5);
}

/// Deadlines were moved both ways, some far ahead, and keys are gone.
#[test]
fn a_scan_of_timer_records_shows_every_key_and_its_first_tick_is_not_after_its_deadline() {
    let hasher = KeyHasher::new(3);
    let mut store = Store::new(hasher.clone());
    let mut wanted = HashSet::new();
    for key in 0..9_000_u32 {
        let ahead = u64::from(key) * if key % 3 == 0 { 9_000_000 } else { 977 };
        let slot = insert(&mut store, &hasher, key, Some(START + ahead));
        let moved = START + ahead / 2 + u64::from(key % 7) * 50_000;
        let slot = store.set_deadline(slot, Some(moved), START);
        if key % 10 == 0 {
            store.remove(slot);
        } else {
            wanted.insert(key);
        }
    }
    let (mut met, mut from) = (HashMap::new(), Some(0));
    while let Some(place) = from {
        from = store.scan_timed(place, 32, |slot, tick| {
            if store.is_in_use(slot) {
                let key = store.key(slot).first_chunk().expect("four bytes");
                let deadline = store.deadline(slot).expect("all have one");
                let first = met
                    .entry(u32::from_le_bytes(*key))
                    .or_insert((tick, deadline));
                first.0 = tick.min(first.0);
            }
        });
    }
    assert!(met.values().all(|(first, deadline)| first <= deadline));
    assert_eq!(met.into_keys().collect::<HashSet<_>>(), wanted);
}
