//! Crossing the limits.

use tidewheel_collections::{
    Change, Hash, HashRef, Limits, NewDeadline, PACKED_BYTES_MAX, PACKED_ENTRIES_MAX, Set, SetForm,
    ZSet, ZSetRef,
};
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

/// Any limit was taken: one insertion of 60,000 members into a packed collection took 42 s.
#[test]
fn no_limit_keeps_a_collection_packed_beyond_what_one_insertion_can_look_at() {
    let hasher = KeyHasher::new(1);
    let limits = Limits {
        entries: usize::MAX,
        value: usize::MAX,
        integers: usize::MAX,
    };
    let change = Change {
        limits,
        ..change(&hasher)
    };
    let (mut hash, mut set, mut integers) = (Hash::new(), Set::new(), Set::new());
    let mut zset = ZSet::new();
    for i in 0..=PACKED_ENTRIES_MAX {
        let packed = [
            matches!(hash.get(), HashRef::Packed(_)),
            set.get().form() != SetForm::Large,
            integers.get().form() == SetForm::Integers,
            matches!(zset.get(), ZSetRef::Packed(_)),
        ];
        assert_eq!(packed, [true; 4], "{i} members");
        let (text, number) = (format!("m{i}"), i.to_string());
        hash.insert(text.as_bytes(), b"", NewDeadline::None, &change);
        set.insert(text.as_bytes(), NewDeadline::None, &change);
        integers.insert(number.as_bytes(), NewDeadline::None, &change);
        zset.insert(text.as_bytes(), i as f64, NewDeadline::None, &change);
    }
    assert!(matches!(hash.get(), HashRef::Large(_)));
    assert!(matches!(zset.get(), ZSetRef::Large(_)));
    assert_eq!(set.get().form(), SetForm::Large);
    assert_eq!(integers.get().form(), SetForm::Large);
    let (mut hash, mut set, mut zset) = (Hash::new(), Set::new(), ZSet::new());
    let long = vec![b'x'; PACKED_BYTES_MAX / 3];
    for i in 0..4 {
        let member = [&long[..], &[i]].concat();
        hash.insert(&[i], &long, NewDeadline::None, &change);
        set.insert(&member, NewDeadline::None, &change);
        zset.insert(&member, 1.0, NewDeadline::None, &change);
    }
    assert!(matches!(hash.get(), HashRef::Large(_)));
    assert_eq!(set.get().form(), SetForm::Large);
    assert!(matches!(zset.get(), ZSetRef::Large(_)));
}

/// Prints how long one insertion takes: into a packed collection of so many members, and the one
/// that makes it large. The least of some rounds, because other programs run.
#[test]
#[ignore = "a measurement, to be run by name in release"]
#[expect(clippy::print_stdout, reason = "what it is for")]
fn what_one_insertion_takes() {
    println!("us: into a packed one, and the one that makes it large");
    for (entries, bytes) in [
        (512, 16),
        (1_024, 16),
        (2_048, 16),
        (4_096, 16),
        (8_192, 16),
        (4_096, 64),
        (2_048, 128),
        (1_024, 256),
        (512, 512),
        (4_096, 256),
        (512, 4_096),
    ] {
        let mut least = [[u128::MAX; 2]; 4];
        for _ in 0..12 {
            let took = worst_of(entries, bytes);
            for (least, took) in least.iter_mut().zip(took) {
                *least = [least[0].min(took[0]), least[1].min(took[1])];
            }
        }
        let [hash, set, integers, zset] = least.map(|pair| pair.map(|ns| ns / 1_000));
        println!(
            "{entries:5} x {bytes:4} B: hash {hash:?} set {set:?} integers {integers:?} zset {zset:?}"
        );
    }
}

/// Times for each type, in nanoseconds: of the last insertion into a packed collection, and of the
/// one that makes it large.
#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn worst_of(entries: usize, bytes: usize) -> [[u128; 2]; 4] {
    let hasher = KeyHasher::new(1);
    let limits = Limits {
        entries,
        value: 1 << 20,
        integers: entries,
    };
    let change = Change {
        limits,
        ..change(&hasher)
    };
    let (mut hash, mut set, mut integers) = (Hash::new(), Set::new(), Set::new());
    let mut zset = ZSet::new();
    let mut took = [[0; 2]; 4];
    for i in 0..=entries {
        let number = i * 7_919 % 100_003;
        let (text, number) = (format!("{number:0bytes$}"), number.to_string());
        let deadline = NewDeadline::At(5_000 + i as u64);
        let mut clock = |which: usize, run: &mut dyn FnMut()| {
            let began = std::time::Instant::now();
            run();
            took[which][usize::from(i == entries)] = began.elapsed().as_nanos();
        };
        clock(0, &mut || {
            hash.insert(text.as_bytes(), text.as_bytes(), deadline, &change);
        });
        clock(1, &mut || {
            set.insert(text.as_bytes(), deadline, &change);
        });
        clock(2, &mut || {
            integers.insert(number.as_bytes(), NewDeadline::None, &change);
        });
        clock(3, &mut || {
            zset.insert(text.as_bytes(), -(i as f64), deadline, &change);
        });
    }
    took
}
