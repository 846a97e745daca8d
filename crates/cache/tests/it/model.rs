//! Random operations on caches of any configuration against a naive model, compared after every
//! step, in virtual time.

use crate::support::op::{Life, Op, Tags};
use crate::support::setup::Setup;
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
    let pin = |pinned| Op::Pin { key: 35, pinned };
    let insert = Op::Insert {
        key: 35,
        weight: 2,
        life: Life::Configured,
        tags: Tags::NONE,
    };
    let ops = [
        insert,
        pin(true),
        Op::SetMaxCapacity { capacity: 0 },
        pin(false),
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
    let insert = |key, weight| Op::Insert {
        key,
        weight,
        life: Life::Configured,
        tags: Tags::NONE,
    };
    let pin = Op::Pin {
        key: 35,
        pinned: true,
    };
    let end = Op::Pass { nanos: 1 << 40 };
    let mut ops = vec![insert(35, 2), pin, Op::SetMaxCapacity { capacity: 0 }, end];
    ops.extend((0..6).map(|key| insert(key, 1)));
    crate::support::run(&setup, &ops);
}
