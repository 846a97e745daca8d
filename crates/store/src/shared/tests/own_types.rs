//! Types of one's own: of most bits they have no value, and Miri knows.

use std::fmt::Debug;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use bytemuck::NoUninit;

use super::NEVER;
use crate::shared::OptimisticRead;
use crate::{Attributes, Slot, TypedStore};

const KEYS: u64 = if cfg!(miri) { 2 } else { 16 };

/// Neither zeros nor a mixture of two of them is one.
#[derive(Clone, Copy, PartialEq, Debug, NoUninit)]
#[repr(u32)]
enum Side {
    Bid = 0x0101_0101,
    Ask = 0x7070_7070,
}

impl Side {
    fn of(turn: u64) -> Self {
        if turn % 2 == 0 { Self::Bid } else { Self::Ask }
    }
}

/// 31 bytes, which are written one by one.
#[derive(Clone, Copy, PartialEq, Debug, NoUninit)]
#[repr(C)]
struct Odd {
    start: bool,
    turn: [u8; 8],
    rest: [u8; 22],
}

/// In words of 4 bytes, two of which are an enum's.
#[derive(Clone, Copy, PartialEq, Debug, NoUninit)]
#[repr(C)]
struct Quote {
    side: Side,
    turn: [u32; 2],
    check: [u32; 2],
    last: Side,
}

/// Lies further from its key than words are long.
#[derive(Clone, Copy, PartialEq, Debug, NoUninit)]
#[repr(C, align(32))]
struct Wide([u64; 4]);

fn quote(key: u64, turn: u64) -> Quote {
    let halves = |all: u64| [all as u32, (all >> 32) as u32];
    Quote {
        side: Side::of(turn),
        turn: halves(turn),
        check: halves(turn.wrapping_mul(0x0100_0000_01b3) ^ key),
        last: Side::of(turn),
    }
}

fn odd(key: u64, turn: u64) -> Odd {
    Odd {
        start: turn % 2 == 0,
        turn: turn.to_le_bytes(),
        rest: [(turn ^ key) as u8; 22],
    }
}

fn key(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number + 1).expect("not zero")
}

fn place(key: NonZeroU64) -> u32 {
    super::place(key.get())
}

type Store<V> = TypedStore<NonZeroU64, V>;

fn find<V>(store: &Store<V>, key: NonZeroU64) -> Option<Slot> {
    store.find(place(key), |stored| *stored == key)
}

fn insert<V>(store: &mut Store<V>, key: NonZeroU64, value: V) {
    let attributes = Attributes::default();
    match find(store, key) {
        Some(slot) => drop(store.replace(slot, value, attributes, 0)),
        None => {
            store.insert(place(key), key, value, attributes, 0, 100, &|key| {
                place(*key)
            });
        }
    }
}

/// A reader sees whole values, while slots are written, exchanged, left and written again.
fn race<V>(value: fn(u64, u64) -> V, turn_of: fn(&V) -> u64)
where
    V: NoUninit + Send + Sync + PartialEq + Debug,
{
    let mut store = Store::<V>::published_by_copy();
    let lens = store.lens().expect("plain types on a system that can");
    store.begin_change();
    (0..KEYS).for_each(|number| insert(&mut store, key(number), value(number, 0)));
    store.end_change();
    let store = Mutex::new(store);
    let over = AtomicBool::new(false);
    let seen = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers = if cfg!(miri) { 1 } else { 2 };
        for from in 0..readers {
            let (lens, over, seen) = (&lens, &over, &seen);
            scope.spawn(move || {
                let mut number = from;
                while !over.load(Relaxed) {
                    if cfg!(miri) {
                        std::thread::yield_now();
                    }
                    number = (number + 1) % KEYS;
                    let found = lens.read(place(key(number)), number % 2 == 0, || {
                        |deadline| deadline > 0
                    });
                    if let OptimisticRead::Entry(stored, found) = found {
                        let number = stored.get() - 1;
                        assert_eq!(found, value(number, turn_of(&found)), "torn");
                        seen.store(true, Relaxed);
                    }
                    // A vacant pair of the index.
                    let vacant = lens.read(0, false, || |deadline| deadline > 0);
                    assert!(!matches!(vacant, OptimisticRead::Entry(..)));
                }
            });
        }
        let change = |change: &dyn Fn(&mut Store<V>)| {
            let mut store = store.lock().unwrap();
            store.begin_change();
            change(&mut store);
            let freed = store.take_freed();
            store.end_change();
            drop(store);
            drop(freed);
        };
        let turns = if cfg!(miri) { 3 } else { 8000 };
        for turn in 1.. {
            // On a busy machine the readers may come late: then there are more turns.
            if turn >= turns && (cfg!(miri) || seen.load(Relaxed)) {
                break;
            }
            assert!(turn < 10_000_000, "readers see nothing");
            for number in 0..KEYS {
                change(&|store| insert(store, key(number), value(number, turn)));
            }
            change(&|store| {
                let [old, new] = [KEYS + turn % 2, KEYS + 1 - turn % 2].map(key);
                if let Some(slot) = find(store, old) {
                    store.remove(slot, place(old));
                }
                let value = value(new.get() - 1, turn);
                store.exchange(place(new), new, value, None, 0, 4, &|key| place(*key));
            });
            if turn % 8 == 2 {
                change(&|store| {
                    for key in (0..KEYS).map(key) {
                        if let Some(slot) = find(store, key) {
                            store.remove(slot, place(key));
                        }
                    }
                });
            }
        }
        over.store(true, Relaxed);
    });
    store.lock().unwrap().validate(&|key| place(*key));
}

#[test]
fn enums_are_read_whole() {
    race(quote, |quote| {
        u64::from(quote.turn[1]) << 32 | u64::from(quote.turn[0])
    });
}

#[test]
fn odd_sizes_are_read_whole() {
    race(odd, |odd| u64::from_le_bytes(odd.turn));
}

#[test]
fn wide_alignments_are_read_whole() {
    race(|key, turn| Wide([turn, key, turn, key]), |wide| wide.0[0]);
}

#[test]
fn values_without_a_size_are_read() {
    let mut store = Store::<()>::published_by_copy();
    let lens = store.lens().expect("plain");
    store.begin_change();
    insert(&mut store, key(1), ());
    store.end_change();
    let found = lens.read(place(key(1)), false, || |deadline| deadline > NEVER);
    assert!(matches!(found, OptimisticRead::Entry(stored, ()) if stored == key(1)));
}

#[test]
fn types_of_ones_own_are_read_under_the_lock_unless_somebody_says_that_they_are_plain() {
    assert!(Store::<Quote>::published().lens().is_none());
    assert!(TypedStore::<u64, (u32, u32)>::published().lens().is_none());
    assert!(Store::<Quote>::published_by_copy().lens().is_some());
    assert!(TypedStore::<u64, u64>::published_by_copy().lens().is_some());
}

/// Nothing else keeps a copy of two writes from becoming a value.
#[test]
fn nothing_is_written_before_a_change_begins() {
    let mut store = Store::<Quote>::published_by_copy();
    let place_of = |key: &NonZeroU64| place(*key);
    let panics = |write: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(write)).is_err();
    assert!(panics(&mut || insert(&mut store, key(1), quote(1, 1))));
    let mut store = Store::<Quote>::published_by_copy();
    store.begin_change();
    insert(&mut store, key(1), quote(1, 1));
    store.end_change();
    assert!(panics(&mut || insert(&mut store, key(1), quote(1, 2))));
    assert!(panics(&mut || {
        let (place, key) = (place(key(2)), key(2));
        store.exchange(place, key, quote(2, 2), None, 0, 1, &place_of);
    }));
    // What was taken out is read by nobody.
    store.begin_change();
    let mut taken = store.take_all();
    store.end_change();
    insert(&mut taken, key(1), quote(1, 2));
}
