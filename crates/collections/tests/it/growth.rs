//! Crossing the limits.

use tidewheel_collections::{Change, Hash, HashRef, Limits, NewDeadline, Set, SetForm};
use tidewheel_store::KeyHasher;

const LIMITS: Limits = Limits {
    entries: 4,
    value: 8,
    integers: 6,
};

fn change(hasher: &KeyHasher) -> Change<'_> {
    Change {
        now: 1_000,
        limits: LIMITS,
        hasher,
    }
}

#[test]
fn a_hash_that_grows_keeps_its_fields_and_their_deadlines() {
    let hasher = KeyHasher::new(1);
    let mut hash = Hash::new();
    for (i, field) in ["a", "b", "c", "d", "e"].iter().enumerate() {
        assert!(matches!(hash.get(), HashRef::Packed(_)));
        let deadline = NewDeadline::At(2_000 + i as u64);
        hash.insert(field.as_bytes(), b"1", deadline, &change(&hasher));
    }
    assert!(matches!(hash.get(), HashRef::Large(_)));
    let mut gone = Vec::new();
    hash.expire(2_003, 10, |field| gone.push(field.key[0]));
    assert_eq!((gone, hash.get().len()), (b"abcd".to_vec(), 1));
    assert_eq!(
        hash.get().find(b"e").and_then(|field| field.deadline),
        Some(2_004)
    );
}

#[test]
fn a_field_that_is_written_again_loses_or_keeps_its_deadline_as_told() {
    let hasher = KeyHasher::new(1);
    for entries in [4, 0] {
        let limits = Limits { entries, ..LIMITS };
        let change = Change {
            limits,
            ..change(&hasher)
        };
        let mut hash = Hash::new();
        let deadline = |hash: &Hash| hash.get().find(b"f").and_then(|field| field.deadline);
        assert!(hash.insert(b"f", b"1", NewDeadline::At(5_000), &change));
        assert!(!hash.insert(b"f", b"22", NewDeadline::Keep, &change));
        assert_eq!(deadline(&hash), Some(5_000));
        assert!(!hash.insert(b"f", b"3", NewDeadline::None, &change));
        assert_eq!((deadline(&hash), hash.get().is_timed()), (None, false));
        assert_eq!(hash.get().value(b"f"), Some(&b"3"[..]));
    }
}

#[test]
fn a_set_of_integers_is_one_until_another_member_comes() {
    let hasher = KeyHasher::new(1);
    let mut set = Set::new();
    for member in ["1", "2", "3"] {
        set.insert(member.as_bytes(), NewDeadline::None, &change(&hasher));
        assert_eq!(set.get().form(), SetForm::Integers);
    }
    set.insert(b"x", NewDeadline::None, &change(&hasher));
    set.remove(b"x");
    assert_eq!(set.get().form(), SetForm::Packed);
    set.insert(b"4", NewDeadline::None, &change(&hasher));
    assert_eq!(set.get().form(), SetForm::Packed);
    set.insert(b"5", NewDeadline::None, &change(&hasher));
    assert_eq!(set.get().form(), SetForm::Large);
}

#[test]
fn a_set_of_many_integers_is_large_as_soon_as_another_member_comes() {
    let hasher = KeyHasher::new(1);
    let mut set = Set::new();
    for member in 0..6 {
        set.insert(
            member.to_string().as_bytes(),
            NewDeadline::None,
            &change(&hasher),
        );
    }
    assert_eq!(set.get().form(), SetForm::Integers);
    set.insert(b"x", NewDeadline::None, &change(&hasher));
    assert_eq!((set.get().form(), set.get().len()), (SetForm::Large, 7));
}

/// Integers are not held against the limit of bytes until they become ordinary members.
#[test]
fn a_set_of_long_integers_is_large_as_soon_as_another_member_comes() {
    let hasher = KeyHasher::new(1);
    let mut set = Set::new();
    set.insert(b"1234567890", NewDeadline::None, &change(&hasher));
    assert_eq!(set.get().form(), SetForm::Integers);
    set.insert(b"x", NewDeadline::None, &change(&hasher));
    assert_eq!(set.get().form(), SetForm::Large);
}
