//! A store of few entries is small.

use tidewheel_store::{KeyHasher, NewValue, Store};

/// Entries of every size class, a few of each, held 16 KiB for each class.
#[test]
fn a_store_of_few_entries_holds_little_more_than_they_need() {
    for count in [1, 10, 100, 500, 2_000] {
        let hasher = KeyHasher::new(5);
        let mut store: Store<()> = Store::new(hasher.clone());
        for i in 0..count {
            let (key, value) = (u64::from(i as u32).to_le_bytes(), vec![0; i * 7 % 400]);
            let hash = hasher.hash(&key);
            store.insert(hash, &key, 0, NewValue::Inline(&value), None, 0);
        }
        store.validate();
        let (used, held) = (store.bytes(), store.held_bytes());
        assert!(
            held <= used + used / 3 + 8 * 1024,
            "{count} entries need {used} bytes, and hold {held}"
        );
    }
}

#[test]
fn a_store_of_a_thousand_equal_entries_holds_a_tenth_more_than_they_need() {
    let hasher = KeyHasher::new(5);
    let mut store: Store<()> = Store::new(hasher.clone());
    for i in 0..1_000u64 {
        let key = [i.to_le_bytes(), i.to_le_bytes()].concat();
        store.insert(hasher.hash(&key), &key, 0, NewValue::Inline(b""), None, 0);
    }
    let (used, held) = (store.bytes(), store.held_bytes());
    assert!(
        held <= used + used / 10,
        "{used} bytes are needed, {held} held"
    );
}

/// The first chunk of timer records took a page of 8 KiB.
#[test]
fn a_store_of_few_deadlines_holds_one_ring_and_little_more() {
    const RING: usize = 4_168;
    let hasher = KeyHasher::new(5);
    let mut store: Store<()> = Store::new(hasher.clone());
    for i in 0..20u64 {
        let key = i.to_le_bytes();
        let hash = hasher.hash(&key);
        store.insert(
            hash,
            &key,
            0,
            NewValue::Inline(b""),
            Some(1_000 + i % 4),
            1_000,
        );
    }
    store.validate();
    let (used, held) = (store.bytes(), store.held_bytes());
    assert!(
        held <= used + RING + 2_048,
        "{used} bytes are needed, {held} held"
    );
}
