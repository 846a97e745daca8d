//! Random operations on a store against a naive map, compared after every step, in virtual time.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidewheel_store::{Expired, INLINE_MAX, KeyHasher, NewValue, Store, Value};

/// The model of one entry.
#[derive(Debug, Clone, PartialEq)]
struct Kept {
    tag: u8,
    access: u32,
    value: Vec<u8>,
    object: bool,
    deadline: Option<u64>,
}

#[derive(Debug, Clone)]
enum Op {
    Put {
        key: u16,
        tag: u8,
        len: usize,
        object: bool,
        ttl: Option<u64>,
    },
    /// Another value of the same length, if it can take the old one's place.
    Overwrite {
        key: u16,
        tag: u8,
        ttl: Option<u64>,
    },
    SetDeadline {
        key: u16,
        ttl: Option<u64>,
    },
    SetAccess {
        key: u16,
        access: u32,
    },
    Remove {
        key: u16,
    },
    Expire {
        ahead: u64,
        budget: u32,
    },
    /// As `Expire`; entries with the tag 12 or above are handed back.
    HandBack {
        ahead: u64,
        budget: u32,
        next: u64,
    },
    Maintain {
        budget: u32,
    },
    /// Removes all keys of a residue class, so that pages become sparse.
    Thin {
        residue: u16,
        of: u16,
    },
    Scan {
        count: usize,
    },
}

fn ttl() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        2 => Just(None),
        6 => (0u64..600).prop_map(Some),
        2 => (0u64..100_000_000).prop_map(Some),
        1 => prop_oneof![
            Just(Some((1 << 48) - 1 - START)),
            Just(Some((1 << 48) - START)),
            Just(Some(u64::MAX - START)),
            Just(Some(1 << 33)),
        ],
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let len = prop_oneof![
        5 => 0usize..40, 2 => 100usize..300, 1 => Just(127usize), 1 => Just(128usize),
        1 => 300usize..INLINE_MAX,
    ];
    prop_oneof![
        12 => (0u16..400, 0u8..16, len, prop::bool::weighted(0.1), ttl())
            .prop_map(|(key, tag, len, object, ttl)| Op::Put { key, tag, len, object, ttl }),
        4 => (0u16..400, 0u8..16, ttl()).prop_map(|(key, tag, ttl)| Op::Overwrite { key, tag, ttl }),
        4 => (0u16..400, ttl()).prop_map(|(key, ttl)| Op::SetDeadline { key, ttl }),
        1 => (0u16..400, 0u32..1 << 24).prop_map(|(key, access)| Op::SetAccess { key, access }),
        3 => (0u16..400).prop_map(|key| Op::Remove { key }),
        3 => (prop_oneof![0u64..3, 0u64..1000, 0u64..100_000_000], prop_oneof![0u32..40, Just(u32::MAX)])
            .prop_map(|(ahead, budget)| Op::Expire { ahead, budget }),
        2 => (prop_oneof![0u64..3, 0u64..1000], prop_oneof![0u32..40, Just(u32::MAX)], 0u64..50)
            .prop_map(|(ahead, budget, next)| Op::HandBack { ahead, budget, next }),
        2 => (0u32..200).prop_map(|budget| Op::Maintain { budget }),
        1 => (0u16..7, 2u16..7).prop_map(|(residue, of)| Op::Thin { residue, of }),
        1 => (1usize..50).prop_map(|count| Op::Scan { count }),
    ]
}

/// Where the store's time starts in these tests.
const START: u64 = 1 << 40;

/// A key whose length depends on its number; a few are longer than a page.
fn key_of(key: u16) -> Vec<u8> {
    let len = if key.is_multiple_of(97) {
        5000
    } else {
        2 + (key as usize % 29)
    };
    let mut bytes = key.to_le_bytes().to_vec();
    bytes.resize(len, b'k');
    bytes
}

fn run(ops: Vec<Op>) {
    let hasher = KeyHasher::new(7);
    let mut store: Store<Vec<u8>> = Store::new(hasher.clone());
    let mut model: BTreeMap<u16, Kept> = BTreeMap::new();
    let mut now = START;
    for (step, op) in ops.into_iter().enumerate() {
        match op {
            Op::Put {
                key,
                tag,
                len,
                object,
                ttl,
            } => {
                let bytes = key_of(key);
                let value: Vec<u8> = (0..len).map(|i| (i + step) as u8).collect();
                let deadline = ttl.map(|ttl| now.saturating_add(ttl));
                let new = if object {
                    NewValue::Object(value.clone())
                } else {
                    NewValue::Inline(&value)
                };
                let hash = hasher.hash(&bytes);
                let before = model.get(&key);
                match store.find(hash, &bytes) {
                    Some(slot) => {
                        let before = before.expect("the store has only what the model has");
                        let (_, old) = store.replace(slot, tag, new, deadline, now);
                        assert_eq!(old, before.object.then(|| before.value.clone()));
                    }
                    None => {
                        assert!(before.is_none());
                        store.insert(hash, &bytes, tag, new, deadline, now);
                    }
                }
                let access = before.map_or(0, |kept| kept.access);
                model.insert(
                    key,
                    Kept {
                        tag,
                        access,
                        value,
                        object,
                        deadline,
                    },
                );
            }
            Op::Overwrite { key, tag, ttl } => {
                let bytes = key_of(key);
                if let Some(seen) = store.look(hasher.hash(&bytes), &bytes) {
                    let kept = model.get_mut(&key).expect("same keys");
                    let deadline = ttl.map(|ttl| now.saturating_add(ttl));
                    let value: Vec<u8> = (0..kept.value.len()).map(|i| (i + step) as u8).collect();
                    if store.overwrite(&seen, tag, &value, deadline, now) {
                        assert!(!kept.object);
                        assert_eq!(store.find(hasher.hash(&bytes), &bytes), Some(seen.slot));
                        (kept.tag, kept.value, kept.deadline) = (tag, value, deadline);
                    } else {
                        let same = seen.deadline() == deadline;
                        assert!(kept.object || !same, "nothing has to move");
                    }
                }
            }
            Op::SetDeadline { key, ttl } => {
                let bytes = key_of(key);
                if let Some(slot) = store.find(hasher.hash(&bytes), &bytes) {
                    let deadline = ttl.map(|ttl| now.saturating_add(ttl));
                    let slot = store.set_deadline(slot, deadline, now);
                    assert_eq!(store.key(slot), bytes);
                    model.get_mut(&key).expect("same keys").deadline = deadline;
                }
            }
            Op::SetAccess { key, access } => {
                let bytes = key_of(key);
                if let Some(slot) = store.find(hasher.hash(&bytes), &bytes) {
                    store.set_access(slot, access);
                    model.get_mut(&key).expect("same keys").access = access;
                }
            }
            Op::Remove { key } => remove(&mut store, &hasher, &mut model, key),
            Op::Thin { residue, of } => {
                for key in 0..400 {
                    if key % of == residue {
                        remove(&mut store, &hasher, &mut model, key);
                    }
                }
            }
            Op::Expire { ahead, budget } => {
                now += ahead;
                let mut last = 0;
                let mut fired = 0;
                let progress = store.expire(now, budget, |gone| {
                    assert!(gone.deadline <= now, "expired early");
                    assert!(gone.deadline >= last, "out of the order of deadlines");
                    last = gone.deadline;
                    fired += 1;
                    let key = u16::from_le_bytes([gone.key[0], gone.key[1]]);
                    assert_eq!(gone.key, key_of(key));
                    let kept = model.remove(&key).expect("what expires was there");
                    assert_eq!(
                        (Some(gone.deadline), gone.tag),
                        (at(kept.deadline), kept.tag)
                    );
                    assert_eq!(gone.object, kept.object.then_some(kept.value));
                });
                assert_eq!(progress.fired, fired);
                let overdue = model
                    .values()
                    .any(|kept| kept.deadline.is_some_and(|d| d <= now));
                if overdue {
                    assert!(
                        progress.backlog,
                        "something due is left, and nobody says so"
                    );
                }
                if budget > 0 && overdue {
                    assert!(progress.fired + progress.moved > 0, "no progress");
                }
            }
            Op::HandBack {
                ahead,
                budget,
                next,
            } => {
                now += ahead;
                hand_back(&mut store, &mut model, now, budget, next);
            }
            Op::Maintain { budget } => {
                let mut moves = Vec::new();
                store.maintain_and_tell(budget, |from, to| moves.push((from, to)));
                // An entry may move twice. Where it is last is where it is found.
                for (_, to) in moves
                    .iter()
                    .filter(|(_, to)| !moves.iter().any(|m| m.0 == *to))
                {
                    let key = store.key(*to).to_vec();
                    assert_eq!(store.find(hasher.hash(&key), &key), Some(*to));
                }
            }
            Op::Scan { count } => {
                let mut seen = Vec::new();
                let mut cursor = Some(0);
                while let Some(from) = cursor {
                    cursor = store.scan(from, count, |slot| {
                        let key = store.key(slot);
                        seen.push(u16::from_le_bytes([key[0], key[1]]));
                    });
                }
                seen.sort_unstable();
                assert_eq!(seen, model.keys().copied().collect::<Vec<_>>());
            }
        }
        compare(&store, &hasher, &model, now);
        store.validate();
    }
    // Whatever the history, everything can be expired and its memory comes back.
    let dead_later = model
        .values()
        .filter(|kept| kept.deadline.is_some())
        .count();
    let mut fired = 0;
    while store.expire(u64::MAX, 100, |_| fired += 1).backlog {}
    assert_eq!(fired, dead_later);
    let keys: Vec<u16> = model.keys().copied().collect();
    for key in keys {
        if model[&key].deadline.is_none() {
            remove(&mut store, &hasher, &mut model, key);
        }
    }
    assert!(store.is_empty());
    store.validate();
    for _ in 0..10_000 {
        if !store.maintain(100) {
            break;
        }
    }
    assert!(
        store.held_bytes() < 80_000,
        "{} bytes are held by nothing",
        store.held_bytes()
    );
}

/// Expires, and does one of three things with each entry that is handed back: it moves it `next`
/// ticks ahead, removes it, or files it for now, as a caller does who must stop.
fn hand_back(
    store: &mut Store<Vec<u8>>,
    model: &mut BTreeMap<u16, Kept>,
    now: u64,
    budget: u32,
    next: u64,
) {
    let mut handed = Vec::new();
    let number = |key: &[u8]| u16::from_le_bytes([key[0], key[1]]);
    let mut gone = 0;
    let stays = |tag: u8| tag >= 12;
    let sink = |expired: Expired<'_, Vec<u8>>| {
        assert!(expired.tag < 12, "an entry that should stay was removed");
        let kept = model.remove(&number(expired.key)).expect("it was there");
        let value = (!kept.object).then_some(&kept.value[..]);
        assert_eq!(expired.inline(), value);
        gone += 1;
    };
    let progress = store.expire_or_hand_back(now, budget, stays, sink, &mut handed);
    assert_eq!(progress.fired as usize, gone + handed.len());
    assert!(handed.is_sorted_by_key(|back| back.deadline));
    for (i, back) in handed.into_iter().enumerate() {
        let key = number(store.key(back.slot));
        let kept = model.get_mut(&key).expect("it is still there");
        assert_eq!(
            (Some(back.deadline), store.deadline(back.slot)),
            (at(kept.deadline), None)
        );
        assert!(back.deadline <= now && kept.tag >= 12);
        match i % 3 {
            0 => {
                kept.deadline = Some(now + next);
                store.set_deadline(back.slot, kept.deadline, now);
            }
            1 => {
                let kept = model.remove(&key).expect("it is there");
                assert_eq!(store.remove(back.slot), kept.object.then_some(kept.value));
            }
            _ => {
                kept.deadline = Some(now);
                store.set_deadline(back.slot, kept.deadline, now);
            }
        }
    }
    if !progress.backlog {
        let overdue = |kept: &Kept| kept.tag < 12 && kept.deadline.is_some_and(|at| at <= now);
        assert!(!model.values().any(overdue), "something due is left");
    }
}

fn remove(
    store: &mut Store<Vec<u8>>,
    hasher: &KeyHasher,
    model: &mut BTreeMap<u16, Kept>,
    key: u16,
) {
    let bytes = key_of(key);
    let slot = store.find(hasher.hash(&bytes), &bytes);
    let kept = model.remove(&key);
    assert_eq!(slot.is_some(), kept.is_some());
    if let (Some(slot), Some(kept)) = (slot, kept) {
        assert_eq!(store.remove(slot), kept.object.then_some(kept.value));
    }
}

/// The one deadline that cannot be told from "none" in 48 bits reads one tick later.
fn at(deadline: Option<u64>) -> Option<u64> {
    deadline.map(|d| if d == (1 << 48) - 1 { d + 1 } else { d })
}

fn compare(store: &Store<Vec<u8>>, hasher: &KeyHasher, model: &BTreeMap<u16, Kept>, now: u64) {
    assert_eq!(store.len(), model.len());
    assert_eq!(
        store.timed(),
        model
            .values()
            .filter(|kept| kept.deadline.is_some())
            .count()
    );
    let earliest = model.values().filter_map(|kept| kept.deadline).min();
    match (store.next_deadline(), earliest) {
        // What is overdue is due now.
        (Some(next), Some(earliest)) => assert!(next <= earliest.max(now)),
        (None, Some(_)) => panic!("a deadline is pending, and nobody would wake up"),
        _ => {}
    }
    for (&key, kept) in model {
        let bytes = key_of(key);
        let slot = store
            .find(hasher.hash(&bytes), &bytes)
            .expect("the key is there");
        assert_eq!(store.key(slot), bytes);
        assert_eq!(store.deadline(slot), at(kept.deadline));
        assert_eq!(
            (store.tag(slot), store.access(slot)),
            (kept.tag, kept.access)
        );
        match store.value(slot) {
            Value::Inline(value) => assert!(!kept.object && value == kept.value),
            Value::Object(value) => assert!(kept.object && *value == kept.value),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn store_behaves_like_a_map(ops in prop::collection::vec(op(), 1..250)) {
        run(ops);
    }
}
