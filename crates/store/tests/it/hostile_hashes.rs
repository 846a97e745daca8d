//! Stores whose callers' hashes are bad: memory stays in proportion to entries, and every operation
//! works.

use std::collections::HashSet;

use tidewheel_store::{Attributes, KeyHasher, NewValue, Slot, Store, TypedStore};

/// Where the time starts in these tests.
const START: u64 = 1 << 40;

/// Enough for every kind of place to crowd its segment, and for a directory that would be deep.
const ENTRIES: u32 = 8_000;

/// A name, and a way from a key to its place.
type Places = (&'static str, fn(&u32) -> u32);

/// Places as a user's `Hash` may have them.
const PLACES: [Places; 4] = [
    ("all equal", |_| 0),
    ("equal high bits", |key| 0xffff_f000 | key & 0xfff),
    ("few", |key| (key % 3).wrapping_mul(0x9e37_79b9)),
    ("half of them equal", |key| {
        if key.is_multiple_of(2) {
            u32::MAX
        } else {
            key.wrapping_mul(0x9e37_79b9)
        }
    }),
];

type Typed = TypedStore<u32, u64>;

fn insert(store: &mut Typed, place_of: &impl Fn(&u32) -> u32, key: u32) -> Slot {
    let attributes = Attributes {
        deadline: key.is_multiple_of(4).then_some(START + u64::from(key)),
        ..Attributes::default()
    };
    let (place, value) = (place_of(&key), u64::from(key));
    let capacity = u64::MAX >> 1;
    store.insert(place, key, value, attributes, START, capacity, place_of)
}

/// In the index, a vacant pair looks like one of place 0.
#[test]
fn a_key_of_place_zero_is_found_where_it_is_and_nowhere_else() {
    let all_zero = |_: &u32| 0;
    let mut typed = Typed::new();
    insert(&mut typed, &|_| u32::MAX, 1);
    let hasher = KeyHasher::new(5);
    let mut bytes: Store<()> = Store::new(hasher.clone());
    bytes.insert(
        hasher.hash(b"one"),
        b"one",
        0,
        NewValue::Inline(b""),
        None,
        0,
    );
    for _ in 0..3 {
        assert!(typed.look(0, |key| *key == 0).is_none());
        assert_eq!(typed.find(0, |key| *key == 0), None);
        typed.prefetch_entry(0);
        assert_eq!(bytes.find(0, b"zero"), None);
        bytes.warm_entry(0);

        let slot = insert(&mut typed, &all_zero, 0);
        let found = typed.look(0, |key| *key == 0).map(|found| found.slot());
        assert_eq!(found, Some(slot));
        typed.remove(slot, 0);
    }
}

/// 3,700 keys with equal hashes made a directory of 257 MiB.
#[test]
fn a_bad_hash_costs_a_typed_store_no_memory_beyond_its_entries() {
    for (name, place_of) in PLACES {
        let mut store = Typed::new();
        for key in 0..ENTRIES {
            insert(&mut store, &place_of, key);
            let held = store.held_bytes();
            let allowed = 80 * store.len() + 64 * 1024;
            assert!(held <= allowed, "{name}: {key} keys hold {held} bytes");
        }
        store.validate(&place_of);
    }
}

#[test]
fn a_typed_store_with_a_bad_hash_finds_expires_evicts_tidies_and_scans() {
    for (name, place_of) in PLACES {
        let mut store = Typed::new();
        let mut left: HashSet<u32> = (0..ENTRIES).collect();
        for key in 0..ENTRIES {
            insert(&mut store, &place_of, key);
        }
        while store
            .expire(START + 4_000, 64, &place_of, |gone| {
                assert!(left.remove(&gone.key), "{name}");
            })
            .backlog
        {}
        for key in (1..ENTRIES).step_by(4) {
            let slot = store.find(place_of(&key), |stored| *stored == key);
            let slot = slot.expect("nobody has removed it");
            assert_eq!(store.remove(slot, place_of(&key)).value, u64::from(key));
            left.remove(&key);
        }
        for _ in 0..500 {
            let gone = store.evict(&place_of).expect("nothing is pinned");
            assert!(left.remove(&gone.key), "{name}");
        }
        while store.maintain(64, &place_of) {}
        store.validate(&place_of);

        let (mut met, mut cursor) = (HashSet::new(), Some(0));
        while let Some(from) = cursor {
            cursor = store.scan(from, 100, |slot| {
                assert!(met.insert(*store.key(slot)), "{name}: met twice");
            });
        }
        assert_eq!(met, left, "{name}");
    }
}

/// No limit could see memory that is held but not counted.
#[test]
fn a_stores_bytes_in_use_include_all_of_its_index() {
    for (name, place_of) in PLACES {
        let mut store: Store<()> = Store::new(KeyHasher::new(1));
        for key in 0..ENTRIES {
            let hash = u64::from(place_of(&key));
            let bytes = key.to_le_bytes();
            store.insert(hash, &bytes, 0, NewValue::Inline(b"v"), None, START);
        }
        let (used, held) = (store.bytes(), store.held_bytes());
        // Pages of blocks, which are 16 KiB each, may have room.
        assert!(
            held <= used + 32 * 1024 && held <= 64 * ENTRIES as usize,
            "{name}: {held} bytes are held, {used} counted"
        );
    }
}
