//! Every timer queue against a BTreeMap, with hostile clocks and deadlines, compared after every
//! step.
//!
//! A failing case is minimised, printed and kept beside this file; it runs first from then on.

use crate::common::lane::Traits;
use crate::common::ops::{Op, op, start};
use crate::common::run::run;
use crate::common::subject::Entries;
use crate::common::twins::twins;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tidewheel_timer::{HashedWheel, HierarchicalWheel, IndexedHeap, TimerSet};

/// A quarter of `cases`, and the whole of them in the deep tier, which sets `PROPTEST_CASES`.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases: (cases * ProptestConfig::default().cases / 1024).max(1),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    vec(op(), 1..60)
}

const WHEEL: Traits = Traits {
    exact: false,
    turn: None,
    reach: u64::MAX,
};

const HEAP: Traits = Traits {
    exact: true,
    ..WHEEL
};

/// A timer beyond the horizon is met every 2^30 ticks, so the clock may not leap over all time.
const fn hashed(slots: u64) -> Traits {
    Traits {
        exact: false,
        turn: Some(slots),
        reach: 1 << 36,
    }
}

macro_rules! suite {
    ($name:ident, $traits:expr, $cases:expr, $make:expr) => {
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(config($cases))]

                #[test]
                fn a_set_behaves_as_the_model(start in start(), ops in ops()) {
                    run(TimerSet::new($make(start)), $traits, start, &ops);
                }

                #[test]
                fn under_an_owner_it_behaves_as_the_model(start in start(), ops in ops()) {
                    run(Entries::<_, { u32::MAX }>::new($make(start)), $traits, start, &ops);
                }

                #[test]
                fn any_split_of_the_budget_gives_the_same_sequence(
                    start in start(),
                    ops in ops(),
                ) {
                    twins(|| TimerSet::new($make(start)), $traits, start, &ops);
                }
            }
        }
    };
}

suite!(hierarchical_wheel, WHEEL, 256, HierarchicalWheel::new);
suite!(hashed_wheel_of_64, hashed(64), 128, |now| HashedWheel::new(
    64, now
));
suite!(hashed_wheel_of_4096, hashed(4096), 128, |now| {
    HashedWheel::new(4096, now)
});
suite!(binary_heap, HEAP, 64, IndexedHeap::<2>::new);
suite!(quaternary_heap, HEAP, 64, IndexedHeap::<4>::new);

proptest! {
    #![proptest_config(config(256))]

    /// One dead record of 256 looks alive.
    #[test]
    fn wheel_under_an_owner_that_keeps_eight_bits_behaves_as_the_model(
        start in start(),
        ops in ops(),
    ) {
        run(Entries::<_, 0xff>::new(HierarchicalWheel::new(start)), WHEEL, start, &ops);
    }

    /// As the typed store keeps them: they tell about when the timer is registered.
    #[test]
    fn wheel_under_an_owner_that_keeps_eight_upper_bits_behaves_as_the_model(
        start in start(),
        ops in ops(),
    ) {
        run(Entries::<_, 0xff00>::new(HierarchicalWheel::new(start)), WHEEL, start, &ops);
    }
}
