//! Random operations on caches of any configuration against a naive model, compared after every
//! step, in virtual time.

use crate::support::op::{KEYS, New, Op};
use crate::support::setup::{Listening, Room, Setup, Shape};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cache_behaves_like_its_model(
        setup in any::<u64>().prop_map(Setup::from_bits),
        ops in prop::collection::vec(any::<u64>().prop_map(Op::from_bits), 1..200),
    ) {
        crate::support::run(&setup, &ops);
    }

    /// Where old values are served: loads of few keys, and what time and other calls do to them.
    #[test]
    fn loads_behave_like_the_model(
        setup in any::<u64>().prop_map(with_old_values),
        ops in prop::collection::vec(any::<u64>().prop_map(about_loads), 1..200),
    ) {
        crate::support::run(&setup, &ops);
    }
}

fn with_old_values(bits: u64) -> Setup {
    let shapes = [Shape::Grace, Shape::Soft, Shape::Refresh, Shape::All];
    Setup {
        room: Room::Unbounded,
        shape: shapes[(bits >> 16) as usize % shapes.len()],
        listener: Listening::Everything,
        prompt: true,
        ..Setup::from_bits(bits)
    }
}

fn about_loads(bits: u64) -> Op {
    // Load, Store, Get, Refresh, Change, Expire, Persist, Pass, Drive.
    const KINDS: [u64; 16] = [
        14, 14, 14, 14, 12, 12, 20, 20, 25, 25, 31, 36, 43, 47, 47, 55,
    ];
    let kind = KINDS[(bits % 16) as usize];
    let (key, more) = (bits >> 8 & 1, bits >> 9 & 0x3ff);
    let fields = more * u64::from(KEYS) + key;
    Op::from_bits(bits >> 24 << 24 | fields << 8 | kind)
}

/// Found by fuzzing: the end of such a value may be rounded to now or to the next tick.
#[test]
fn a_value_that_is_unchanged_for_no_time_may_be_over_at_once() {
    let setup = Setup::from_bits(u64::from_le_bytes([230, 45, 203, 204, 0, 8, 0, 0]));
    let ops = Op::all_from_bytes(&[17, 0, 0, 0, 0, 17, 17, 17, 17, 0, 50, 52, 0, 44, 0, 191, 11]);
    crate::support::run(&setup, &ops);
}

/// Found by fuzzing: nobody listens, so the model must know that room is made.
#[test]
fn what_is_unpinned_makes_room_for_a_capacity_that_has_shrunk() {
    let setup = Setup::from_bits(u64::from_le_bytes([250, 255, 255, 255, 255, 255, 255, 255]));
    let insert = Op::Insert(35, New::of(2));
    let ops = [
        insert,
        Op::Pin(35, true),
        Op::SetMaxCapacity(0),
        Op::Pin(35, false),
    ];
    crate::support::run(&setup, &ops);
}

/// Found by fuzzing: it is not live, but its time is not over either.
#[test]
fn a_value_that_is_unchanged_for_no_time_and_kept_after_that_stays() {
    let setup = Setup::from_bits(u64::from_le_bytes([208, 208, 51, 51, 0, 0, 0, 40]));
    let ops = Op::all_from_bytes(&[
        208, 2, 0, 0, 0, 149, 255, 0, 208, 208, 132, 132, 132, 208, 208, 40, 208, 2, 0, 132, 132,
        208, 41, 93, 211, 0, 254,
    ]);
    crate::support::run(&setup, &ops);
}

/// Found by fuzzing, and by an attack: what is stored in the place of a pinned entry that is over
/// is too much for a capacity that has shrunk meanwhile.
#[test]
fn what_takes_a_pinned_entry_s_place_is_within_a_capacity_that_has_shrunk() {
    let setup = Setup::from_bits(u64::from_le_bytes([10, 25, 29, 252, 4, 67, 3, 3]));
    let insert = |key, weight| Op::Insert(key, New::of(weight));
    let (pin, shrink) = (Op::Pin(35, true), Op::SetMaxCapacity(0));
    let mut ops = vec![insert(35, 2), pin, shrink, Op::Pass(1 << 40)];
    ops.extend((0..6).map(|key| insert(key, 1)));
    crate::support::run(&setup, &ops);
}
